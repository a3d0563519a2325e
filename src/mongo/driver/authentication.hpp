// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection.hpp"
#include "mongo/driver/answer.hpp"

#include <utility>

namespace colock::mongo::detail {

/// Authenticates a new connection. The driver does so before its first command, which is a `ping` here: the commands of
/// locks are sent only on a connection that is authenticated.
///
/// Thread safety: none; belongs to the strand.
class authentication final : public task
{
public:
    /// Why the connection is not authenticated. Nothing but the authentication was sent on it.
    [[nodiscard]] answer take_failure() noexcept { return std::move(got_); }
    [[nodiscard]] bool spoils() const noexcept override { return got_.what != answer::kind::done; }

private:
    void perform(::_mongoc_client_t& driver) noexcept override;
    void fail(answer why) noexcept override { got_ = std::move(why); }
    void blame(const error_code& cause, bool was_sent) override;
    void performed() override {}

    answer got_;
};

} // namespace colock::mongo::detail
