// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/lanes.hpp"

#include <algorithm>
#include <utility>

namespace colock::mongo::detail {

lanes::lanes(const asio::any_io_executor& strand, destination to, std::size_t most)
    : strand_(strand), to_(std::move(to)), most_(most)
{
}

lanes::~lanes()
{
    for (const auto& each : open_)
        each->drop();
}

void lanes::ask(task_ptr asked, lease_clock::time_point deadline)
{
    waiting_.push_back({std::move(asked), deadline});
    run_next();
}

bool lanes::withdraw(const task& asked)
{
    return std::erase_if(waiting_, [&](const wish& each) { return each.asked.get() == &asked; }) > 0;
}

lane* lanes::take_free()
{
    while (!free_.empty()) {
        auto* const each = free_.back();
        free_.pop_back();
        if (!each->is_stale())
            return each;
        close(*each);
    }
    if (open_.size() == most_)
        return nullptr;
    open_.push_back(lane::make(strand_, to_, weak_from_this()));
    return open_.back().get();
}

void lanes::give_up(const task& asked)
{
    if (withdraw(asked))
        return;
    const auto found = std::ranges::find_if(open_, [&](const auto& each) { return each->performs(asked); });
    if (found == open_.end())
        return;
    const auto spoiled = *found;
    spoiled->close();
}

void lanes::run_next()
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

void lanes::on_free(lane& which, bool spoiled)
{
    const auto is_it = [&](const auto& each) { return &*each == &which; };
    if (std::ranges::find_if(open_, is_it) == open_.end())
        return;
    if (spoiled)
        std::erase_if(open_, is_it);
    else
        free_.push_back(&which);
    run_next();
    if (has_room() && room_)
        room_();
}

void lanes::on_stale(lane& which)
{
    std::erase(free_, &which);
    close(which);
    if (open_.empty() && waiting_.empty() && all_stale_)
        all_stale_();
}

void lanes::close(lane& which)
{
    const auto kept = which.shared_from_this();
    std::erase(open_, kept);
    kept->close();
}

void lanes::close_free()
{
    for (auto* const each : std::exchange(free_, {}))
        close(*each);
}

void lanes::close_all()
{
    free_.clear();
    const auto waiting = std::exchange(waiting_, {});
    for (const auto& each : std::exchange(open_, {}))
        each->close();
    for (const auto& each : waiting)
        each.asked->performed();
}

} // namespace colock::mongo::detail
