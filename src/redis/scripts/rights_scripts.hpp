// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// The script that examines the rights of the user. A command that another script uses must be added here.

// probe[ fence] -> {command, error} for each command that failed
// Calls each command of the other scripts in a form that changes nothing: the probe key does not exist, and the calls
// write only to existing keys. An increment that is no number is refused after the check of the right. The message is
// published to the channel of a lock with an empty name. The result contains every error, so the caller must tell
// refusals from other errors. In a cluster, the names are given as arguments, and PUBLISH is called only if the server
// does not know SPUBLISH, and PUBSUB otherwise.
inline constexpr std::string_view rights = R"lua(
local refused = {}
local function try(command, ...)
    local answer = redis.pcall(command, ...)
    if type(answer) == 'table' and answer.err then refused[#refused + 1] = {command, answer.err} end
    return answer
end
local probe, fence = KEYS[1] or ARGV[1], KEYS[2] or ARGV[2]
try('DEL', probe)
try('GET', probe)
try('GETEX', probe)
try('MGET', probe)
try('SET', probe, '', 'XX', 'PX', 1)
try('PEXPIRE', probe, 1)
try('PERSIST', probe)
try('PTTL', probe)
try('TYPE', probe)
try('TIME')
local channel = string.sub(probe, 1, -7) .. ':'
local published = not KEYS[1] and try('SPUBLISH', channel, '')
if fence then
    if not published or type(published) == 'table' and string.find(published.err, 'command called from') then
        try('PUBLISH', channel, '')
    else
        try('PUBSUB', 'SHARDNUMSUB', channel)
    end
    try('INCRBY', fence, '')
    try('ZADD', probe, 'XX', 0, '')
    try('ZREM', probe, '')
    try('ZCARD', probe)
    try('ZSCORE', probe, '')
    try('ZRANGE', probe, 0, 0)
    try('ZRANGEBYSCORE', probe, 0, 0)
    try('ZSCAN', probe, 0)
    try('PEXPIREAT', probe, 1)
end
return refused
)lua";

} // namespace colock::inline v0::redis::detail::lua
