// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::inline v0::remote {

/// The effect of a request on the holders of one key.
enum class key_purpose : unsigned char
{
    inspect,
    remove,
};

} // namespace colock::inline v0::remote
