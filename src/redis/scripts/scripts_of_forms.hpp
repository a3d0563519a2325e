// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::redis::detail {

// Other programs may keep keys under our prefix. A script acts only on a value that has the form which colock writes;
// any other is refused, like a key of another type, and never changed.

// Stands before each script that may meet such a value.
// token, entry: patterns of a writer's intent and of a member of a group's index. holder, reader: of what is stored for
// a holder: 32 digits of token and 11 of time, then four texts with a NUL between them; a reader begins with an `s`.
// look: an error if the first or the last member of a sorted set has another form, else nil and the scores of these
// two. It never looks at all of them, and returns nothing for what is no sorted set.
// sweep: removes expired members of that form, at most 1000 of them, and returns how many.
// Patterns, because each function costs every run of a script a tenth of a microsecond or two.
inline constexpr std::string_view form_functions = R"lua(
local foreign = 'WRONGTYPE the key holds a value of another program'
local token = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x$'
local entry = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x.-:.'
local holder = '^s?%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local reader = '^s%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local function look(set, form)
    local first = redis.pcall('ZRANGE', set, 0, 0, 'WITHSCORES')
    if not first[1] then
        if first.err and not string.find(first.err, 'WRONGTYPE', 1, true) then return first end
        return
    end
    local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
    if string.find(first[1], form) and string.find(last[1], form) then return nil, first[2], last[2] end
    return redis.error_reply(foreign)
end
local function sweep(set, now, form)
    local gone = {}
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 1000)) do
        if string.find(member, form) then gone[#gone + 1] = member end
    end
    if #gone > 0 then redis.call('ZREM', set, unpack(gone)) end
    return #gone
end
)lua";

} // namespace colock::redis::detail
