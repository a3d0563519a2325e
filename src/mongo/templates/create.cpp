// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/create.hpp"

#include "mongo/templates/lock_expressions.hpp"
#include "mongo/templates/statements.hpp"

namespace colock::inline v0::mongo::detail::templates {

namespace {

/// Document after a create that is refused. A document that the upsert has just inserted gets the fields of a free
/// lock, so that every document has the form of a lock.
const string document_after_refusal = cond(is_new,
    root_with(object({{"t", "null"}, {"x", none}, {"o", "null"}, {"h", "[]"}, {"hx", none}, {"p", released_at}})),
    root);

/// A document of another program does not change.
string create(const string& is_grantable, const string& grant, const string& otherwise)
{
    return replace_with(cond(is_lock_document,
        cond(may_be_granted(token), cond(is_grantable, root_with(grant), otherwise), document_after_refusal), root));
}

/// Whether the mark of a claim that waits has to be renewed. The mark consists of `w`, the time until which it is
/// valid, and `wb`, the name of the adapter that waits.
const string mark_is_due = below(w, sum(now, "30000"));
const string waiters_mark = cond(mark_is_due, sum(now, "60000"), w);
/// Name of the adapter in the mark. '*' stands for several adapters, until one of them renews the mark.
const string waiters_name = cond(either(mark_is_due, equal(if_null("wb", "null"), R"("?v")")), R"("?v")", R"("*")");
/// The document with the mark of a claim that waits.
const string marked_root = root_with(object({{"w", waiters_mark}, {"wb", waiters_name}}));

/// Fields of a document whose lock is granted exclusively.
fields exclusive_fields(const string& holder_token, const string& fence, bool has_ttl)
{
    auto all = holder_fields(holder_token, fence, has_ttl);
    all.insert(all.end(), {{"h", "[]"}, {"hx", none}, {"p", "null"}});
    return all;
}

} // namespace

string as_command(const string& create)
{
    return find_and_modify(by_key, {create}, returned_document::after, true);
}

string create_exclusive(bool queues, bool has_ttl)
{
    const auto holds_already = all_of({equal(R"("$t")", token), below(R"("$e")", number)});
    const auto is_grantable = all_of(
        {either(is_exclusive_expired, holds_already), either(are_shared_expired, equal(size_of(live_holders), "0"))});
    const auto is_writer = equal(wt_or_null, token);
    // Readers hold the lock, and no other writer waits.
    const auto becomes_waiting_writer = all_of({above(raw_hx, now), either(binary("$lte", wx, now), is_writer)});
    auto held = exclusive_fields(token, next_fence, has_ttl);
    if (!queues)
        return create(is_grantable, object(held), root);
    held.insert(held.end(), {{"wt", cond(is_writer, "null", wt_or_null)}, {"wx", cond(is_writer, none, wx)}});
    return create(is_grantable, object(held),
        root_with(
            object({{"w", waiters_mark}, {"wb", waiters_name}, {"wt", cond(becomes_waiting_writer, token, wt_or_null)},
                {"wx", cond(becomes_waiting_writer, sum(now, "15000"), wx)}})));
}

// First requests: no document contains the token yet.

string create_first_exclusive(bool queues, bool has_ttl)
{
    return create(all_of({is_exclusive_expired, are_shared_expired}),
        object(exclusive_fields(token, next_fence, has_ttl)), queues ? marked_root : root);
}

string batched_first_exclusive(bool has_ttl, const string& claim_token, const string& fence)
{
    // The expiry of a refusal is not checked: a token is refused only after its first request was sent, so a first
    // request with a refused token is always too late.
    const auto refused = binary("$in", claim_token, R"({"$map":{"input":)" + d + R"(,"as":"i","in":"$$i.t"}})");
    return conditional_statement(
        all_of({below(now, R"("?l")"), either(has_numbers, is_new), binary("$lte", greatest_of({raw_x, raw_hx}), now),
            below(raw_f, fence), R"({"$not":[)" + refused + "]}"}),
        object(exclusive_fields(claim_token, fence, has_ttl)));
}

string create_shared(bool queues, bool has_ttl)
{
    const auto holds_already =
        above(size_of(filtered(h, all_of({is_own_token, is_live, below(R"("$$i.e")", number)}))), "0");
    const auto has_room = all_of({below(size_of(live_holders), R"("?n")"), binary("$lte", R"("$wx")", now),
        equal(size_of(filtered(h, all_of({is_own_token, is_live}))), "0")});
    const auto is_grantable = all_of({is_exclusive_expired, either(holds_already, has_room)});
    const auto holder = list({object(holder_fields(token, next_fence, has_ttl))});
    return create(is_grantable,
        object({{"t", "null"}, {"x", none}, {"f", next_fence}, {"o", "null"},
            {"h", binary("$concatArrays", other_holders, holder)}, {"hx", greatest_of({hx, expiry(has_ttl)})},
            {"p", "null"}}),
        queues ? marked_root : root);
}

// Several shared claims of one key. The temporary field `k` contains the number of holders, or the maximum if no claim
// may be granted.

string several_holder(const string& claim_token, const string& place, bool has_ttl)
{
    const auto holder = list({object(holder_fields(claim_token, sum(next_fence, place), has_ttl))});
    return cond(below(sum(R"("$k")", place), R"("?n")"), holder, "[]");
}

string create_several(bool queues, bool has_ttl, const string& claim_tokens, const string& count, const string& holders)
{
    const auto named = binary("$in", R"("$$i.t")", claim_tokens);
    const auto is_valid = all_of({below(now, R"("?l")"), is_lock_document, has_next_fence,
        equal(size_of(filtered(d, named)), "0"), equal(size_of(filtered(h, named)), "0")});
    const auto is_grantable = all_of({is_exclusive_expired, binary("$lte", R"("$wx")", now)});
    const auto count_stage = replace_with(
        cond(is_valid, root_with(object({{"k", cond(is_grantable, size_of(live_holders), R"("?n")")}})), forced_error));
    const auto all_holders = binary("$concatArrays", live_holders, R"({"$concatArrays":)" + holders + '}');
    const auto grant_stage = replace_with(cond(below(R"("$k")", R"("?n")"),
        root_with(object({{"t", "null"}, {"x", none}, {"f", sum(next_fence, count)}, {"o", "null"}, {"h", all_holders},
            {"hx", greatest_of({hx, expiry(has_ttl)})}, {"p", "null"}})),
        root));
    const auto mark_stage = replace_with(cond(binary("$lte", sum(R"("$k")", count), R"("?n")"), root, marked_root));
    return count_stage + ',' + grant_stage + ',' + (queues ? mark_stage + ',' : "") + unset_k;
}
string create_several(bool queues, bool has_ttl)
{
    return create_several(queues, has_ttl, tokens, R"("?q")", R"("?h")");
}

} // namespace colock::inline v0::mongo::detail::templates
