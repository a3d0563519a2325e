// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/connection_pool.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Time that is added to `connect_timeout` for the authentication.
constexpr auto authentication_margin = std::chrono::seconds(1);

} // namespace

connection_pool::connection_pool(const asio::any_io_executor& strand, destination to, std::size_t max_connections)
    : strand_(strand), to_(std::move(to)), max_connections_(max_connections), pause_timer_(strand)
{
}

connection_pool::~connection_pool()
{
    for (const auto& each : open_)
        each->drop();
}

void connection_pool::ask(task_ptr queued_task, lease_clock::time_point deadline)
{
    waiting_.push_back({std::move(queued_task), deadline});
    run_next();
}

bool connection_pool::withdraw(const task& which)
{
    return std::erase_if(waiting_, [&](const pending_request& each) { return each.queued_task.get() == &which; }) > 0;
}

connection* connection_pool::take_free()
{
    bool has_closed = false;
    while (!free_.empty()) {
        auto* const each = free_.back();
        free_.pop_back();
        if (!each->is_stale())
            return each;
        close(*each);
        has_closed = true;
    }
    if (has_closed && open_.empty() && on_all_stale_) {
        // The event loop would have reported the end a moment later. The server may have been replaced.
        on_all_stale_();
        asio::post(strand_, [kept = shared_from_this()] { kept->close_all(); });
        return nullptr;
    }
    if (!may_open())
        return nullptr;
    const auto new_connection = open_.emplace_back(connection::make(strand_, to_, weak_from_this()));
    if (!to_.login)
        return new_connection.get();
    authenticate(*new_connection);
    return nullptr;
}

/// Authenticates on behalf of the first task that waits. Another task may get the connection, and this task another
/// connection.
void connection_pool::authenticate(connection& new_connection)
{
    unauthenticated_ = &new_connection;
    authentication_began_ = lease_clock::now();
    authentication_ = std::make_shared<authentication>();
    const auto limit = saturating_add(authentication_began_, to_.connect_timeout + authentication_margin);
    new_connection.run(authentication_, std::min(waiting_.front().deadline, limit));
}

std::shared_ptr<authentication> connection_pool::end_authentication() noexcept
{
    unauthenticated_ = nullptr;
    return std::exchange(authentication_, nullptr);
}

void connection_pool::fail_next(answer result)
{
    if (waiting_.empty())
        return;
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next.queued_task->fail(std::move(result));
    next.queued_task->on_end();
    if (auto following = next.queued_task->take_next())
        ask(std::move(following), next.deadline);
}

void connection_pool::give_up(const task& which)
{
    if (withdraw(which))
        return;
    const auto found = std::ranges::find_if(open_, [&](const auto& each) { return each->performs(which); });
    if (found == open_.end())
        return;
    const auto closed = *found;
    closed->close();
}

void connection_pool::run_next()
{
    while (!waiting_.empty()) {
        auto* const taken = take_free();
        if (!taken)
            return;
        auto next = std::move(waiting_.front());
        waiting_.pop_front();
        taken->run(std::move(next.queued_task), next.deadline);
    }
}

void connection_pool::on_free(connection& which, bool closed)
{
    const auto is_it = [&](const auto& each) { return &*each == &which; };
    if (std::ranges::find_if(open_, is_it) == open_.end())
        return;
    const auto finished = &which == unauthenticated_ ? end_authentication() : nullptr;
    if (closed)
        std::erase_if(open_, is_it);
    else
        free_.push_back(&which);
    if (finished && closed)
        fail_next(finished->take_failure());
    else if (finished) {
        if (on_authenticated_)
            on_authenticated_();
        pause_authentication();
    }
    process_queue();
}

void connection_pool::pause_authentication()
{
    const auto now = lease_clock::now();
    is_paused_ = true;
    pause_timer_.expires_at(saturating_add(now, now - authentication_began_));
    pause_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self)
            return;
        self->is_paused_ = false;
        self->process_queue();
    });
}

void connection_pool::process_queue()
{
    run_next();
    if (has_capacity() && on_capacity_)
        on_capacity_();
}

void connection_pool::on_stale(connection& which)
{
    std::erase(free_, &which);
    close(which);
    if (open_.empty() && waiting_.empty() && on_all_stale_)
        on_all_stale_();
}

void connection_pool::close(connection& which)
{
    const auto kept = which.shared_from_this();
    std::erase(open_, kept);
    kept->close();
}

void connection_pool::close_free()
{
    for (auto* const each : std::exchange(free_, {}))
        close(*each);
}

void connection_pool::close_all()
{
    free_.clear();
    end_authentication();
    pause_timer_.cancel();
    const auto waiting = std::exchange(waiting_, {});
    for (const auto& each : std::exchange(open_, {}))
        each->close();
    for (const auto& each : waiting)
        each.queued_task->on_end();
}

} // namespace colock::inline v0::mongo::detail
