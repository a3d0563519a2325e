// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::remote {

/// What a release or an abandon promises after it has succeeded.
enum class promise : unsigned char
{
    released,
    /// The claim holds nothing, and no request in flight will change that.
    for_good,
};

/// What a request does with the holders of one key.
enum class key_purpose : unsigned char
{
    inspect,
    remove,
};

} // namespace colock::remote
