// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"

#include <initializer_list>

namespace colock::inline v0::mongo::detail::templates {

// Commands and statements that contain a pipeline.

inline const string by_key = R"({"_id":"?k"})";
/// Matches only a document that has the form of a lock.
inline const string by_lock = R"({"_id":"?k","x":{"$gte":0},"hx":{"$gte":0}})";
inline const string by_holder = R"({"_id":"?k","t":"?t"})";
inline const string by_shared_holder = R"({"_id":"?k","h.t":"?t"})";

/// Stage that removes the temporary field `k`.
inline const string unset_k = R"({"$unset":"k"})";
/// A change that servers forbid. It makes a statement fail, so that the reply shows which statements have changed
/// nothing.
inline const string forced_error = R"({"_id":{"$numberLong":"0"}})";

enum class returned_document : unsigned char
{
    before,
    after,
};
/// Fields that `lock_view` reads.
inline const string shown_fields =
    R"({"t":1,"x":1,"f":1,"e":1,"hx":1,"h.t":1,"h.x":1,"h.f":1,"h.e":1,"wt":1,"wx":1,"w":1,"wb":1,)"
    R"("o.owner":1,"o.host":1})";
/// \param reply_document selects the document in the reply: before or after the change
/// \param shown fields in the reply; empty: all
[[nodiscard]] string find_and_modify(const string& query, std::initializer_list<string> stages,
    returned_document reply_document = returned_document::after, bool upsert = false,
    const string& shown = shown_fields);

/// A statement of an update.
[[nodiscard]] string statement(const string& stage);
/// A statement of an update that fails unless `condition` holds.
[[nodiscard]] string conditional_statement(const string& condition, const string& changes);

} // namespace colock::inline v0::mongo::detail::templates
