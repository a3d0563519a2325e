// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/extend.hpp"

#include "mongo/templates/lock_expressions.hpp"
#include "mongo/templates/statements.hpp"

namespace colock::inline v0::mongo::detail::templates {

namespace {

/// Whether the exclusive holder holds the lock, and the request is not too late.
const string is_extendable = all_of({above(x, now), below(now, R"("?l")"), below(e, number)});
/// The same for a shared holder.
const string is_extendable_holder = all_of({is_own_token, is_live, below(now, R"("?l")"), below(R"("$$i.e")", number)});

/// Shared holders, of which some are changed.
/// \param condition condition for a change
/// \param end new expiry
/// \param renewed new time of the last extension
/// \param request new number of the last request
string changed_holders(const string& condition, const string& end, const string& renewed, const string& request)
{
    const auto changed = object({{"t", R"("$$i.t")"}, {"x", end}, {"f", R"("$$i.f")"}, {"o", R"("$$i.o")"},
        {"a", R"("$$i.a")"}, {"r", renewed}, {"e", request}});
    return R"({"$map":{"input":"$h","as":"i","in":)" + cond(condition, changed, R"("$$i")") + "}}";
}

string group_statement(const string& query, const string& stage)
{
    return R"({"q":)" + query + R"(,"u":[)" + stage + "]}";
}

} // namespace

string extend_exclusive(bool has_ttl)
{
    const auto end = expiry(has_ttl);
    return find_and_modify(
        by_holder, {set({{"x", cond(is_extendable, end, R"("$x")")}, {"r", cond(is_extendable, now, R"("$r")")},
                       {"e", cond(is_extendable, number, R"("$e")")},
                       {"g", release_count(all_of({is_extendable, below(end, R"("$x")")}))}})});
}
string extend_shared(bool has_ttl)
{
    const auto end = expiry(has_ttl);
    const auto shorter = filtered(h, all_of({is_extendable_holder, below(end, R"("$$i.x")")}));
    return find_and_modify(
        by_shared_holder, {set({{"h", changed_holders(is_extendable_holder, end, now, number)},
                              {"hx", greatest_of({hx, end})}, {"g", release_count(above(size_of(shorter), "0"))}})});
}

string extend_group_exclusive()
{
    const auto end = expiry(true);
    const auto sooner = all_of({above(x, now), below(x, end)});
    return group_statement(by_holder, set({{"x", cond(sooner, end, R"("$x")")}, {"r", cond(sooner, now, R"("$r")")}}));
}
string extend_group_shared()
{
    const auto end = expiry(true);
    const auto sooner = all_of({is_own_token, is_live, below(R"("$$i.x")", end)});
    const auto any = above(size_of(filtered(h, sooner)), "0");
    return group_statement(by_shared_holder,
        set({{"h", changed_holders(sooner, end, now, R"("$$i.e")")}, {"hx", cond(any, greatest_of({hx, end}), hx)}}));
}

string touch_exclusive()
{
    return find_and_modify(by_holder, {set({{"e", cond(is_extendable, number, R"("$e")")}})});
}
string touch_shared()
{
    return find_and_modify(by_shared_holder,
        {set(
            {{"h", changed_holders(is_extendable_holder, R"("$$i.x")", R"("$$i.r")", number)}, {"hx", hx}, {"g", g}})});
}

} // namespace colock::inline v0::mongo::detail::templates
