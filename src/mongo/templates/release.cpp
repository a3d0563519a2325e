// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/release.hpp"

#include "mongo/templates/lock_expressions.hpp"
#include "mongo/templates/statements.hpp"

namespace colock::inline v0::mongo::detail::templates {

namespace {

string released_exclusive()
{
    return object({{"t", "null"}, {"x", none}, {"o", "null"}, {"p", released_at}, {"g", release_count_if_held}});
}

/// \param others holders that are left
string released_shared(const string& others)
{
    const auto was_last = equal(size_of(others), "0");
    return object({{"h", others}, {"hx", cond(was_last, none, hx)}, {"p", cond(was_last, released_at, p_or_null)},
        {"g", release_count_if_held}});
}

} // namespace

string release_exclusive()
{
    return find_and_modify(by_holder, {replace_with(cond(above(raw_x, now), root_with(released_exclusive()), root))});
}

string release_shared()
{
    const auto was_last = equal(size_of(other_holders), "0");
    return find_and_modify(by_shared_holder,
        {set({{"k", is_holder}}),
            set({{"h", cond(R"("$k")", other_holders, R"("$h")")},
                {"hx", cond(all_of({R"("$k")", was_last}), none, R"("$hx")")},
                {"p", cond(all_of({R"("$k")", was_last}), released_at, R"("$p")")}, {"g", release_count(R"("$k")")}}),
            unset_k});
}

string batched_release_exclusive(const string& holder_token)
{
    return conditional_statement(all_of({equal(R"("$t")", holder_token), above(raw_x, now)}), released_exclusive());
}
string batched_release_shared()
{
    return conditional_statement(is_holder, released_shared(other_holders));
}
string batched_release_several(const string& holder_tokens, const string& count)
{
    const auto named = binary("$in", R"("$$i.t")", holder_tokens);
    const auto others = filtered(h, all_of({R"({"$not":[)" + named + "]}", is_live}));
    return conditional_statement(equal(size_of(filtered(h, all_of({named, is_live}))), count), released_shared(others));
}

string withdraw(bool refuses)
{
    const auto held = equal(t_or_null, token);
    const auto is_writer = equal(wt_or_null, token);
    const auto refused_now = filtered(d, all_of({is_other_token, is_live}));
    const auto refused = R"([{"t":"?t","x":"?b"}])";
    const fields withdrawn{{"t", cond(held, "null", t_or_null)}, {"x", cond(held, none, x)},
        {"o", cond(held, "null", o_or_null)}, {"f", f}, {"h", other_holders},
        {"hx", cond(equal(size_of(other_holders), "0"), none, hx)}, {"wt", cond(is_writer, "null", wt_or_null)},
        {"wx", cond(is_writer, none, wx)}, {"d", refuses ? binary("$concatArrays", refused_now, refused) : d},
        {"dx", refuses ? greatest_of({dx, R"("?b")"}) : dx},
        {"g", release_count(either(held, either(is_writer, is_holder)))}};
    const fields dated{{"p", date_if_free}};
    if (!refuses)
        return find_and_modify(by_lock, {set(withdrawn), set(dated)}, returned_document::before);
    // A document of another program does not change.
    const auto change = [](const fields& changed) {
        return replace_with(cond(is_lock_document, root_with(object(changed)), root));
    };
    return find_and_modify(by_key, {change(withdrawn), change(dated)}, returned_document::before, true);
}

string remove_named()
{
    const string named = R"("?a")";
    const auto is_named = binary("$in", t_or_null, named);
    const auto others = filtered(h, R"({"$not":[)" + binary("$in", R"("$$i.t")", named) + "]}");
    return find_and_modify(R"({"_id":"?k","$or":[{"t":{"$in":"?a"}},{"h.t":{"$in":"?a"}}]})",
        {set({{"t", cond(is_named, "null", t_or_null)}, {"x", cond(is_named, none, x)},
             {"o", cond(is_named, "null", o_or_null)}, {"h", others},
             {"hx", cond(equal(size_of(others), "0"), none, hx)}, {"g", release_count("true")}}),
            set({{"p", date_if_free}})},
        returned_document::before, false, "");
}

string remove_expired()
{
    const auto is_expired = binary("$lte", x, now);
    const auto is_free = all_of({is_expired, equal(size_of(live_holders), "0")});
    return find_and_modify(by_lock,
        {set({{"t", cond(is_expired, "null", t_or_null)}, {"x", cond(is_expired, none, x)},
            {"o", cond(is_expired, "null", o_or_null)}, {"h", live_holders},
            {"hx", cond(equal(size_of(live_holders), "0"), none, hx)},
            {"p", cond(is_free, if_null("p", released_at), "null")}, {"g", release_count("true")}})},
        returned_document::before, false, "");
}

} // namespace colock::inline v0::mongo::detail::templates
