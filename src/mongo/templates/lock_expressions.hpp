// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"
#include "mongo/templates/lock_view.hpp"

namespace colock::inline v0::mongo::detail::templates {

// Expressions on the document of a lock. Fields and placeholders are documented at `commands`.

// Placeholders.

inline const string token = R"("?t")";
inline const string number = R"("?e")";
inline const string literal_owner = R"({"$literal":"?o"})";
/// Tokens of several claims. A literal, so that the server does not calculate it for each holder.
inline const string tokens = R"({"$literal":"?a"})";

// Fields, with a default value if they are missing.

inline const string x = if_null("x", none);
inline const string f = if_null("f", none);
inline const string e = if_null("e", none);
inline const string hx = if_null("hx", none);
inline const string wx = if_null("wx", none);
inline const string w = if_null("w", none);
inline const string g = if_null("g", none);
inline const string dx = if_null("dx", none);
inline const string h = if_null("h", "[]");
inline const string d = if_null("d", "[]");
inline const string t_or_null = if_null("t", "null");
inline const string o_or_null = if_null("o", "null");
inline const string p_or_null = if_null("p", "null");
inline const string wt_or_null = if_null("wt", "null");

// Fields as they are. A missing field is less than any number, so comparisons of numbers need no default.

inline const string raw_x = R"("$x")";
inline const string raw_hx = R"("$hx")";
inline const string raw_f = R"("$f")";

/// Whether no exclusive holder is live.
inline const string is_exclusive_expired = binary("$lte", raw_x, now);
/// Whether no shared holder is live.
inline const string are_shared_expired = binary("$lte", raw_hx, now);

// Holders and refused tokens: elements of `h` and `d`, each of which is `$$i`.

inline const string is_live = above(R"("$$i.x")", now);
inline const string is_own_token = equal(R"("$$i.t")", token);
inline const string is_other_token = differs(R"("$$i.t")", token);
inline const string live_holders = filtered(h, is_live);
inline const string other_holders = filtered(h, all_of({is_other_token, is_live}));

/// Whether the token is that of a live shared holder.
inline const string is_holder = above(size_of(filtered(h, all_of({is_own_token, is_live}))), "0");

// Fences.

inline const string next_fence = cond(binary("$gte", raw_f, now), sum(raw_f, "1"), now);
/// Whether a greater fence exists. If there is none, nothing is granted, and the reply contains the unchanged document.
inline const string has_next_fence = below(raw_f, R"({"$numberLong":")" + std::to_string(max_fence) + "\"}");

// Releases.

/// Date of a release, which is never earlier than the last fence. The document may be purged only after this date. Then
/// the fences of the key start again from the server's clock, which has passed the last fence.
inline const string released_at = date(greatest_of({R"("$dx")", R"("$f")", now}));
inline const string date_if_free = cond(either(above(x, "0"), above(hx, "0")), "null", released_at);
inline const string has_waiters = above(R"("$w")", now);
/// Counter after the release of a held lock. It grows only if a claim waits, because its change notifies the waiters.
inline const string release_count_if_held = cond(has_waiters, sum(g, "1"), R"("$g")");
/// Counter after a change. It grows only if `condition` holds and a claim waits.
[[nodiscard]] string release_count(const string& condition);

// Grants.

/// Expiry of a granted lock.
[[nodiscard]] string expiry(bool has_ttl);
/// Whether the request is not too late, a greater fence exists, and the token is not refused.
[[nodiscard]] string may_be_granted(const string& claim_token);
/// Fields of a new holder, exclusive or shared.
[[nodiscard]] fields holder_fields(const string& holder_token, const string& fence, bool has_ttl);

// Form of the document.

/// Whether an upsert has just inserted the document, which then has only its key.
inline const string is_new = equal(root, R"({"_id":"$_id"})");
/// Every document of a lock has both numbers. A missing field is less than any number, and values of other types are
/// greater. Other documents belong to other programs, and no statement may change them.
inline const string has_numbers = all_of({binary("$gte", raw_x, "0"), binary("$gte", raw_hx, "0")});
inline const string is_lock_document = either(
    all_of({has_numbers, binary("$lte", greatest_of({raw_x, raw_hx}), R"({"$numberLong":"9223372036854775807"})")}),
    is_new);

} // namespace colock::inline v0::mongo::detail::templates
