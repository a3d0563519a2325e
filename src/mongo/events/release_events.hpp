// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/topology/primary.hpp"
#include "remote/requests/listening_loop.hpp"

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// The change stream that reports releases, on a connection of its own. One stream serves all keys: it reports only
/// documents that a waiter has marked.
///
/// Thread safety: none; belongs to the strand.
class release_events final : public remote::listening_loop
{
public:
    /// \param waiting receives the way in which waiters are notified of a release
    release_events(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& reporter, primary& requests, remote::wait_sources& sources,
        std::atomic<waiting_by>& waiting);

    void follow_requests() override;
    [[nodiscard]] bool connected() const noexcept override { return pool_ != nullptr; }
    [[nodiscard]] std::optional<lease_clock::duration> longest_wait() const override;

private:
    using answer_handler = void (release_events::*)(const answer&);

    void connect() override;
    void disconnect() override;
    void listen() override;
    void note_decision() override;
    /// The stream reports all keys, so there is nothing to do for one of them.
    void stop_listening(const std::vector<std::string>&) override {}
    void ask(document request, answer_handler then);
    void opened(const answer& result);
    void ask_for_more();
    void received(const answer& result);
    /// Asks for more changes a short time after the last request.
    void pause();
    /// Reports to the observer, once, why there is no change stream.
    void warn_of_polling(const answer& refusal);
    /// Ends the cursor on the server, because the change stream is not read any more.
    void kill_cursor();

    lease_timer pause_;
    const settings& config_;
    remote::event_reporter& reports_;
    primary& requests_;
    std::shared_ptr<connection_pool> pool_;
    /// Name of the server that has the change stream.
    std::string server_;
    /// Id of the change stream's cursor on that server. 0: there is no cursor.
    std::int64_t cursor_ = 0;
    lease_clock::time_point requested_at_{};
    std::atomic<waiting_by>& waiting_;
};

} // namespace colock::inline v0::mongo::detail
