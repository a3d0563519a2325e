// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Other programs may have keys with the same prefix. A script acts only on values of the form that colock writes. All
// other values are refused, like keys of another type, and never changed.

// Prepended to each script that may get an error.
// is_refusal: tells whether an answer is an error other than that of a value of another type. A script must return such
// an error: it says nothing about the lock, so it is neither "not held" nor "busy".
inline constexpr std::string_view refusal_function = R"lua(
local function is_refusal(answer)
    return type(answer) == 'table' and answer.err and not string.find(answer.err, '^%-?WRONGTYPE')
end
)lua";

// Takes the place of PUBLISH on a node with sharded channels. A message costs several times as much as the question
// whether a client of this node is subscribed. No client of another node is.
inline constexpr std::string_view publish_to_shard = R"lua(
local function publish(channel, message)
    local count = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
    if count[2] == 0 then return 0 end
    return redis.pcall('SPUBLISH', channel, message)
end
)lua";

// Prepended to each script that may meet foreign values.
// holder: pattern of the stored value of an exclusive holder. It consists of 32 digits of token, 11 digits of time and
// four texts with NULs between them.
// reader, intent: patterns of the members of a lock's set. A reader is an `s` and the same; its score is its expiry. An
// intent is a `w` and the writer's token; its score is its negative expiry. So intents come first, the last member is a
// reader if there is one, and the members that have expired are those with scores between -now and now.
// entry: pattern of a member of a group's index.
// check_form: returns an error if the first or the last member of a sorted set has another form; otherwise nil and the
// scores of these two members. Other members are not checked. Returns nothing if the key is not a sorted set.
// sweep: removes expired members of the given forms, at most 1000, and returns their number, or an error.
// update_expiry: sets the expiry of a sorted set to that of its last member. Returns an error if a member has another
// form or the user may not set the expiry.
// The forms are patterns and not functions, because each additional function costs 0.1 to 0.2 microseconds in every run
// of a script.
inline constexpr std::string_view form_functions = R"lua(
local foreign = 'WRONGTYPE the key holds a value of another program'
local entry = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x.-:.'
local intent = '^w%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x$'
local holder = '^%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local reader = '^s%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[^%z]*%z[^%z]*%z[^%z]*%z[^%z]*$'
local function check_form(set, form, other)
    local first = redis.pcall('ZRANGE', set, 0, 0, 'WITHSCORES')
    if is_refusal(first) then return first end
    if not first[1] then return end
    local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
    if not string.find(first[1], form) and not string.find(first[1], other)
        or not string.find(last[1], form) and not string.find(last[1], other) then
        return redis.error_reply(foreign)
    end
    return nil, first[2] == 'inf' and math.huge or tonumber(first[2]), last[2] == 'inf' and math.huge or tonumber(last[2])
end
local function sweep(set, now, form, other)
    local found, expired = redis.pcall('ZRANGEBYSCORE', set, -now, now, 'LIMIT', 0, 1000), {}
    if found.err then return found end
    for _, member in ipairs(found) do
        if string.find(member, form) or string.find(member, other) then expired[#expired + 1] = member end
    end
    return #expired > 0 and redis.pcall('ZREM', set, unpack(expired)) or 0
end
local function update_expiry(set, form, other)
    local refused, first, last = check_form(set, form, other)
    if refused or not last then return refused end
    local set_to = last == math.huge and redis.pcall('PERSIST', set)
        or redis.pcall('PEXPIREAT', set, math.max(last, -first))
    if type(set_to) == 'table' then return set_to end
end
)lua";

} // namespace colock::inline v0::redis::detail::lua
