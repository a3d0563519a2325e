// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Encodes a key as one component of a path: percent-encoded, or, if this is longer, as '~' and base64url. All
/// characters but letters, digits, '_' and '-' are encoded, so that no node of ours that begins with a '.' is taken for
/// a key.
[[nodiscard]] std::string encode_key(std::string_view key);
/// Returns nullopt if the component is not the encoding of a key.
[[nodiscard]] std::optional<std::string> decode_key(std::string_view component);

/// Returns the name of the bucket of a key, which is the parent folder of the key's folder: two hexadecimal digits of a
/// hash that is the same in every build.
[[nodiscard]] std::string bucket_of(std::string_view key);

} // namespace colock::inline v0::zookeeper::detail
