// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/transfer.hpp"

#include "mongo/templates/lock_expressions.hpp"
#include "mongo/templates/statements.hpp"

namespace colock::inline v0::mongo::detail::templates {

namespace {

/// Token of the next holder.
const string next_holder = R"("?u")";
/// The temporary field `k` contains whether the next holder gets the lock.
const string is_granted = R"("$k")";

} // namespace

string hand_over(bool has_ttl)
{
    const auto held = above(x, now);
    const auto end = expiry(has_ttl);
    return find_and_modify(by_holder,
        {set({{"k", may_be_granted(next_holder)}}),
            set({{"t", cond(is_granted, next_holder, cond(held, "null", t_or_null))},
                {"x", cond(is_granted, end, cond(held, none, x))}, {"f", cond(is_granted, next_fence, f)},
                {"o", cond(is_granted, literal_owner, "null")}, {"a", cond(is_granted, now, R"("$a")")},
                {"r", cond(is_granted, "null", R"("$r")")}, {"e", cond(held, none, R"({"$numberLong":"-1"})")},
                {"p", cond(is_granted, "null", released_at)}, {"g", cond(is_granted, g, release_count(held))}}),
            unset_k});
}

string adopt_exclusive(bool has_ttl)
{
    const auto holds_already = all_of({equal(R"("$t")", next_holder), below(e, number)});
    return find_and_modify(R"({"_id":"?k","t":{"$in":["?t","?u"]}})",
        {set({{"k",
             all_of({above(x, now), either(equal(R"("$t")", token), holds_already), may_be_granted(next_holder)})}}),
            set({{"t", cond(is_granted, next_holder, t_or_null)}, {"x", cond(is_granted, expiry(has_ttl), x)},
                {"f", cond(is_granted, next_fence, f)}, {"o", cond(is_granted, literal_owner, o_or_null)},
                {"a", cond(is_granted, now, R"("$a")")}, {"r", cond(is_granted, "null", R"("$r")")},
                {"e", cond(is_granted, number, e)}, {"g", release_count(is_granted)}}),
            unset_k});
}

string adopt_shared(bool has_ttl)
{
    const auto holds_already = all_of({equal(R"("$$i.t")", next_holder), below(R"("$$i.e")", number)});
    const auto holder = list({object(holder_fields(next_holder, next_fence, has_ttl))});
    const auto others = filtered(h, all_of({is_other_token, differs(R"("$$i.t")", next_holder), is_live}));
    return find_and_modify(R"({"_id":"?k","h.t":{"$in":["?t","?u"]}})",
        {set({{"k", all_of({above(size_of(filtered(h, all_of({either(is_own_token, holds_already), is_live}))), "0"),
                        may_be_granted(next_holder)})}}),
            set({{"h", cond(is_granted, binary("$concatArrays", others, holder), h)},
                {"hx", cond(is_granted, greatest_of({hx, expiry(has_ttl)}), hx)},
                {"f", cond(is_granted, next_fence, f)}, {"g", release_count(is_granted)}}),
            unset_k});
}

} // namespace colock::inline v0::mongo::detail::templates
