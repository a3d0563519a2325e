// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/zookeeper/adapter.hpp>

#include <vector>

#include <zookeeper/zookeeper.h>

namespace colock::inline v0::zookeeper::detail {

/// The access rights of created nodes, in the form that the driver expects.
class access_rights
{
public:
    /// \param rights empty: all rights for the user, or for everybody if there is no user
    access_rights(std::vector<access_right> rights, bool has_user);
    access_rights(const access_rights&) = delete;
    access_rights& operator=(const access_rights&) = delete;

    [[nodiscard]] const ACL_vector& list() const noexcept { return list_; }

private:
    std::vector<access_right> rights_;
    /// Refers to the texts of `rights_`.
    std::vector<ACL> entries_;
    ACL_vector list_{};
};

} // namespace colock::inline v0::zookeeper::detail
