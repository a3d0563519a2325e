// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/connection_pool.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace colock::mongo::detail {

namespace {

/// Longer than the driver takes to give up a connection that cannot be made.
constexpr auto max_authentication = std::chrono::seconds(3);

} // namespace

connection_pool::connection_pool(const asio::any_io_executor& strand, destination to, std::size_t most)
    : strand_(strand), to_(std::move(to)), most_(most), rest_(strand)
{
}

connection_pool::~connection_pool()
{
    for (const auto& each : open_)
        each->drop();
}

void connection_pool::ask(task_ptr asked, lease_clock::time_point deadline)
{
    waiting_.push_back({std::move(asked), deadline});
    run_next();
}

bool connection_pool::withdraw(const task& asked)
{
    return std::erase_if(waiting_, [&](const pending_request& each) { return each.asked.get() == &asked; }) > 0;
}

connection* connection_pool::take_free()
{
    while (!free_.empty()) {
        auto* const each = free_.back();
        free_.pop_back();
        if (!each->is_stale())
            return each;
        close(*each);
    }
    if (!may_open())
        return nullptr;
    const auto made = open_.emplace_back(connection::make(strand_, to_, weak_from_this()));
    if (!to_.as)
        return made.get();
    authenticate(*made);
    return nullptr;
}

/// For the first task that waits; but another may be given the lane, and another lane the task.
void connection_pool::authenticate(connection& made)
{
    unready_ = &made;
    authentication_began_ = lease_clock::now();
    authentication_ = std::make_shared<authentication>();
    made.run(authentication_, std::min(waiting_.front().deadline, lease_clock::now() + max_authentication));
}

std::shared_ptr<authentication> connection_pool::end_authentication() noexcept
{
    unready_ = nullptr;
    return std::exchange(authentication_, nullptr);
}

void connection_pool::fail_next(answer why)
{
    if (waiting_.empty())
        return;
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next.asked->fail(std::move(why));
    next.asked->performed();
    if (auto following = next.asked->take_next())
        ask(std::move(following), next.deadline);
}

void connection_pool::give_up(const task& asked)
{
    if (withdraw(asked))
        return;
    const auto found = std::ranges::find_if(open_, [&](const auto& each) { return each->performs(asked); });
    if (found == open_.end())
        return;
    const auto spoiled = *found;
    spoiled->close();
}

void connection_pool::run_next()
{
    while (!waiting_.empty()) {
        auto* const taken = take_free();
        if (!taken)
            return;
        auto next = std::move(waiting_.front());
        waiting_.pop_front();
        taken->run(std::move(next.asked), next.deadline);
    }
}

void connection_pool::on_free(connection& which, bool spoiled)
{
    const auto is_it = [&](const auto& each) { return &*each == &which; };
    if (std::ranges::find_if(open_, is_it) == open_.end())
        return;
    const auto ended = &which == unready_ ? end_authentication() : nullptr;
    if (spoiled)
        std::erase_if(open_, is_it);
    else
        free_.push_back(&which);
    if (ended && spoiled)
        fail_next(ended->take_failure());
    else if (ended)
        rest();
    go_on();
}

void connection_pool::rest()
{
    const auto now = lease_clock::now();
    rests_ = true;
    rest_.expires_at(saturating_add(now, now - authentication_began_));
    rest_.async_wait([weak = weak_from_this()](const boost::system::error_code& failed) {
        const auto self = weak.lock();
        if (failed || !self)
            return;
        self->rests_ = false;
        self->go_on();
    });
}

void connection_pool::go_on()
{
    run_next();
    if (has_room() && room_)
        room_();
}

void connection_pool::on_stale(connection& which)
{
    std::erase(free_, &which);
    close(which);
    if (open_.empty() && waiting_.empty() && all_stale_)
        all_stale_();
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
    rest_.cancel();
    const auto waiting = std::exchange(waiting_, {});
    for (const auto& each : std::exchange(open_, {}))
        each->close();
    for (const auto& each : waiting)
        each.asked->performed();
}

} // namespace colock::mongo::detail
