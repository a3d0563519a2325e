// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/server_settings.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace colock::inline v0::redis::detail {

std::string_view info_field(std::string_view info, std::string_view name)
{
    for (std::size_t at = 0; (at = info.find(name, at)) != std::string_view::npos; at += name.size()) {
        const bool starts_line = at == 0 || info[at - 1] == '\n';
        const auto value = at + name.size();
        if (starts_line && value < info.size() && info[value] == ':')
            return info.substr(value + 1, info.find_first_of("\r\n", value) - value - 1);
    }
    return {};
}

bool is_too_old(std::string_view info)
{
    const auto version = info_field(info, "redis_version");
    int major = 0;
    int minor = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), major);
    if (error != std::errc() || end == version.data() + version.size() || *end != '.')
        return false;
    std::from_chars(end + 1, version.data() + version.size(), minor);
    return major < 6 || (major == 6 && minor < 2);
}

bool has_replicas(const reply& info)
{
    const auto count = info_field(info.text, "connected_slaves");
    return !count.empty() && count != "0";
}

std::vector<std::string> settings_warnings(const reply& info)
{
    if (info.is_error())
        return {"INFO is not allowed, so the server's settings cannot be checked"};
    std::vector<std::string> found;
    const auto field = [&](std::string_view name) { return info_field(info.text, name); };
    if (const auto policy = field("maxmemory_policy"); !policy.empty() && policy != "noeviction")
        found.push_back(
            "the server may evict locks (maxmemory-policy " + std::string(policy) + "); set it to noeviction");
    if (field("aof_enabled") == "0")
        found.emplace_back("the server keeps no append-only file: a restart loses locks and gives them to others");
    if (has_replicas(info)) {
        found.emplace_back("the server has replicas: a failover can lose a lock that was granted just before");
        // INFO has this field only if min-replicas-to-write and min-replicas-max-lag are both above 0.
        if (field("min_slaves_good_slaves").empty())
            found.emplace_back(
                "min-replicas-to-write is not set: a master that is cut off continues to grant locks, although the "
                "replica that was promoted grants them, too");
    }
    return found;
}

} // namespace colock::inline v0::redis::detail
