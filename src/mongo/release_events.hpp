// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/primary.hpp"
#include "mongo/question.hpp"
#include "remote/listening_plan.hpp"
#include "remote/parts_owner.hpp"
#include "remote/reports.hpp"
#include "remote/wait_sources.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace colock::mongo::detail {

/// The change stream that tells of releases, on a connection of its own, while somebody waits; or polling in its place.
/// When which, is decided by its plan. One stream serves all keys: it tells only of documents that somebody has marked.
///
/// Thread safety: none; belongs to the strand.
class release_events
{
public:
    using plan_type = remote::listening_plan;
    using event = plan_type::event;

    /// \param by says from then on how waiters hear of a release
    release_events(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config,
        remote::reports& told, primary& requests, remote::wait_sources& sources, std::atomic<waiting_by>& by);

    /// Lets the plan know, and does what it says.
    void on(event what);
    /// The primary was found anew.
    void follow_requests();
    /// Some of what is due for keys by now, and the rest in turns to come.
    void sweep();

    [[nodiscard]] bool connected() const noexcept { return lanes_ != nullptr; }
    [[nodiscard]] bool polls() const noexcept { return plan_.polls(); }

    /// In the child of a fork: the connection is the parent's.
    void forked();

private:
    using question_handler = void (release_events::*)(const answer&);

    void connect();
    void ask(document what, question_handler then);
    void opened(const answer& got);
    void ask_for_more();
    void received(const answer& got);
    void tell_of_changes(const answer& got);
    /// Tells the observer once why there is no change stream.
    void warn_of_polling(const answer& refusal);
    void close();
    /// Tells the server that the change stream is not read any more.
    void kill_cursor();
    void retry_in(lease_clock::duration delay);
    void arm_some();
    void note_way() noexcept;
    /// These do some of it, and tell whether there is more.
    [[nodiscard]] bool forget_unused();
    [[nodiscard]] bool wake_those_due();

    const asio::any_io_executor strand_;
    remote::parts_owner& owner_;
    const settings& config_;
    remote::reports& reports_;
    primary& requests_;
    remote::wait_sources& sources_;
    asio::steady_timer retry_;
    plan_type plan_;
    std::shared_ptr<lanes> lanes_;
    /// Name of the server that has the change stream.
    std::string server_;
    /// Id of the change stream's cursor on that server. 0: there is none.
    std::int64_t cursor_ = 0;
    std::atomic<waiting_by>& by_;
    /// The next part of what is due for keys is posted already.
    bool sweeping_ = false;
};

} // namespace colock::mongo::detail
