// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/answer.hpp"
#include "mongo/driver/connection.hpp"

#include <utility>

namespace colock::inline v0::mongo::detail {

/// Authenticates a new connection. The driver authenticates before its first command, which is a `ping` here. Commands
/// for locks are sent only on authenticated connections.
///
/// Thread safety: none; belongs to the strand.
class authentication final : public task
{
public:
    /// Returns why the connection is not authenticated. No other command was sent on the connection.
    [[nodiscard]] answer take_failure() noexcept { return std::move(result_); }
    [[nodiscard]] bool ends_connection() const noexcept override { return result_.outcome != answer::kind::done; }

private:
    void perform(::_mongoc_client_t& driver) noexcept override;
    void fail(answer result) noexcept override { result_ = std::move(result); }
    void set_cause(const error_code& cause, bool was_sent) override;
    void on_end() override {}

    answer result_;
};

} // namespace colock::inline v0::mongo::detail
