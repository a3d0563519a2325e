// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::remote {

/// Of a release and of an abandon, which differ in what they promise.
enum class promise : unsigned char
{
    released,
    /// And nothing that is still on its way will change that.
    for_good,
};

/// What is done with the holders of one key.
enum class key_purpose : unsigned char
{
    inspect,
    remove,
};

} // namespace colock::remote
