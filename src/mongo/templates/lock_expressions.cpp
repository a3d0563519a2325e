// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/lock_expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

string release_count(const string& condition)
{
    return cond(all_of({condition, has_waiters}), sum(g, "1"), g);
}

string expiry(bool has_ttl)
{
    return has_ttl ? sum(now, R"("?x")") : R"("?x")";
}

string may_be_granted(const string& claim_token)
{
    const auto refused = all_of({above(R"("$dx")", now),
        above(size_of(filtered(d, all_of({equal(R"("$$i.t")", claim_token), is_live}))), "0")});
    return all_of({below(now, R"("?l")"), has_next_fence, R"({"$not":[)" + refused + "]}"});
}

fields holder_fields(const string& holder_token, const string& fence, bool has_ttl)
{
    return {{"t", holder_token}, {"x", expiry(has_ttl)}, {"f", fence}, {"o", literal_owner}, {"a", now}, {"r", "null"},
        {"e", number}};
}

} // namespace colock::inline v0::mongo::detail::templates
