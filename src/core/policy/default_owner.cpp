// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/default_owner.hpp"

#include <unistd.h>

#include <climits>
#include <string>
#include <string_view>

namespace colock::inline v0::detail {

namespace {

std::string host_name()
{
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

} // namespace

std::shared_ptr<const owner_data> make_default_owner(const locker_options& options)
{
    auto owner = std::make_shared<owner_data>();
    owner->owner = options.owner.empty() ? std::to_string(::getpid()) : options.owner;
    owner->host = options.host.empty() ? host_name() : options.host;
    return owner;
}

bool is_this_process(std::string_view owner, std::string_view host)
{
    return owner == std::to_string(::getpid()) && host == host_name();
}

} // namespace colock::inline v0::detail
