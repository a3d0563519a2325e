// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/session/session.hpp"
#include "zookeeper/session/session_events.hpp"

#include <colock/spi/completion.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Opens a separate session, writes to the node `.clock` in it, and reports the number of this transaction.
///
/// A server refuses a session that has seen later transactions than the server has, by closing its connection. A
/// follower that lags behind and a server without a leader close connections, too, so a refusal proves nothing. A new
/// session has seen no transaction, and is not refused. Its write goes through the leader and gets a new number. This
/// number is higher than all numbers seen before, unless the ensemble has lost its history.
///
/// Thread safety: none; belongs to the strand.
class history_probe final : public session_events, public std::enable_shared_from_this<history_probe>
{
public:
    /// \param done called at most once: with the number, or with 0 if the write has failed, the session has ended or
    /// its connection was lost
    [[nodiscard]] static std::shared_ptr<history_probe> start(
        const asio::any_io_executor& strand, const session_settings& settings, completion<std::int64_t> done);
    explicit history_probe(const std::string& chroot, completion<std::int64_t> done);

    /// Returns the session, which the caller has to end. `done` is not called any more.
    [[nodiscard]] std::shared_ptr<session> stop() noexcept;

    void on_connected() noexcept override;
    void on_suspended() noexcept override { report(0); }
    /// The session continues to try.
    void on_unreachable(const connection_failure&) noexcept override {}
    void on_lease_ended() noexcept override {}
    void on_expired() noexcept override { report(0); }
    void on_history_lost() noexcept override { report(0); }
    void on_denied() noexcept override { report(0); }
    void on_changed(std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}

private:
    void write();
    void on_written(const reply& reply);
    void report(std::int64_t transaction);

    const std::string path_;
    completion<std::int64_t> done_;
    std::shared_ptr<session> session_;
    bool is_repeated_ = false;
};

} // namespace colock::inline v0::zookeeper::detail
