// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/access_rights.hpp"

#include <cstdint>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

access_rights::access_rights(std::vector<access_right> rights, bool has_user) : rights_(std::move(rights))
{
    if (rights_.empty())
        rights_.push_back(has_user ? access_right{.scheme = "auth", .id = ""} : access_right{});
    for (auto& each : rights_)
        entries_.push_back({static_cast<std::int32_t>(each.permissions), {each.scheme.data(), each.id.data()}});
    list_ = {static_cast<std::int32_t>(entries_.size()), entries_.data()};
}

} // namespace colock::inline v0::zookeeper::detail
