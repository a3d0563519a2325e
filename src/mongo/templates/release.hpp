// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

// Texts of the commands and statements that release locks, withdraw requests or remove holders. They are documented at
// `commands`.

[[nodiscard]] string release_exclusive();
[[nodiscard]] string release_shared();

/// \param holder_token token of the holder
[[nodiscard]] string batched_release_exclusive(const string& holder_token);
[[nodiscard]] string batched_release_shared();
/// \param holder_tokens tokens of the holders
/// \param count number of the holders
[[nodiscard]] string batched_release_several(const string& holder_tokens, const string& count);

/// \param refuses whether the token is also refused, until `b`
[[nodiscard]] string withdraw(bool refuses);

[[nodiscard]] string remove_named();
[[nodiscard]] string remove_expired();

} // namespace colock::inline v0::mongo::detail::templates
