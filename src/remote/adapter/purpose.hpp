// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::inline v0::remote {

/// The guarantee of a release or an abandon that has succeeded.
enum class release_guarantee : unsigned char
{
    /// The lock that was granted is released. An earlier request that was lost may still take effect.
    released,
    /// The claim holds nothing, and no earlier request will change that.
    settled,
};

/// The effect of a request on the holders of one key.
enum class key_purpose : unsigned char
{
    inspect,
    remove,
};

} // namespace colock::inline v0::remote
