// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Other programs may have keys with the same prefix. A script acts only on values of the form that colock writes. All
// other values are refused, like keys of another type, and never changed.

// Prepended to each script that may meet foreign values.
// token, entry: patterns of a writer's intent, and of a member of a group's index.
// holder, reader: patterns of the stored value of a holder. It consists of 32 digits of token, 11 digits of time and
// four texts with NULs between them. The value of a reader begins with `s`.
// is_refusal: tells whether an answer is an error other than that of a value of another type. A script must return such
// an error: it says nothing about the lock, so it is neither "not held" nor "busy".
// check_form: returns an error if the first or the last member of a sorted set has another form; otherwise nil and the
// scores of these two members. Other members are not checked. Returns nothing if the key is not a sorted set.
// sweep: removes expired members of the given form, at most 1000, and returns their number.
// The forms are patterns and not functions, because each additional function costs 0.1 to 0.2 microseconds in every run
// of a script.
inline constexpr std::string_view form_functions = R"lua(
local foreign = 'WRONGTYPE the key holds a value of another program'
local token = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x$'
local entry = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x.-:.'
local holder = '^s?%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local reader = '^s%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local function is_refusal(answer)
    return type(answer) == 'table' and answer.err and not string.find(answer.err, 'WRONGTYPE', 1, true)
end
local function check_form(set, form)
    local first = redis.pcall('ZRANGE', set, 0, 0, 'WITHSCORES')
    if is_refusal(first) then return first end
    if not first[1] then return end
    local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
    if string.find(first[1], form) and string.find(last[1], form) then return nil, first[2], last[2] end
    return redis.error_reply(foreign)
end
local function sweep(set, now, form)
    local expired = {}
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 1000)) do
        if string.find(member, form) then expired[#expired + 1] = member end
    end
    if #expired > 0 then redis.call('ZREM', set, unpack(expired)) end
    return #expired
end
)lua";

} // namespace colock::inline v0::redis::detail::lua
