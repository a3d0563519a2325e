// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/options.hpp>
#include <colock/status.hpp>

#include <memory>
#include <string_view>

namespace colock::inline v0::detail {

/// Returns the owner data of acquires that name no owner and no host themselves: those of the locker's options. By
/// default, the owner is the process id, and the host is the host name of the machine.
[[nodiscard]] std::shared_ptr<const owner_data> make_default_owner(const locker_options& options);

/// Returns whether the owner and the host are the defaults of this process.
[[nodiscard]] bool is_this_process(std::string_view owner, std::string_view host);

} // namespace colock::inline v0::detail
