// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/world.hpp"

#include <iomanip>
#include <ostream>

namespace colock::simulation {

namespace {

/// A run that needs more handlers than this does not come to rest.
constexpr std::uint64_t max_handlers = 400'000;

} // namespace

void world::block(lease_clock::duration span, std::string_view lost_key)
{
    blocking_key_ = lost_key;
    current_->blocked += span;
    current_->blocked_total += span;
    show_clock_of(*current_);
}

bool world::run_processes()
{
    bool has_run = false;
    for (std::size_t n = 0; n < processes.size(); ++n) {
        process& each = *processes[(first_process_ + n) % processes.size()];
        if (now_ < each.busy_until)
            continue;
        show_clock_of(each);
        current_ = &each;
        for (;;) {
            blocking_key_.clear();
            try {
                if (each.io.poll_one() == 0)
                    break;
            } catch (const thrown_by_handler&) {
                // The exception of a handler leaves the context, and nothing else is lost.
            }
            has_run = true;
            ++handlers;
            each.next_timer.reset();
            if (each.blocked > lease_clock::duration::zero()) {
                each.busy_until = now_ + std::exchange(each.blocked, lease_clock::duration::zero());
                break;
            }
            if (handlers > max_handlers) {
                violate("the run does not come to rest");
                break;
            }
        }
        if (each.io.stopped())
            each.io.restart();
        current_ = nullptr;
    }
    ++first_process_;
    return has_run;
}

std::optional<time_point> world::next_time()
{
    std::optional<time_point> next;
    const auto add_time = [&](time_point when) { next = next ? std::min(*next, when) : when; };
    if (!events_.empty())
        add_time(events_.begin()->first.first);
    for (const auto& each : processes) {
        if (now_ < each->busy_until) {
            add_time(each->busy_until);
            continue;
        }
        if (!each->next_timer) {
            show_clock_of(*each);
            const auto wait = until_next_timer(each->io);
            each->next_timer = wait ? now_ + lease_clock::duration(static_cast<lease_clock::rep>(
                                                 static_cast<double>(wait->count()) / each->clock.rate))
                                    : time_point::max();
        }
        // The division was rounded, or a longer wait of the timer was split.
        if (*each->next_timer <= now_)
            each->next_timer = now_ + milliseconds(1);
        if (*each->next_timer != time_point::max())
            add_time(*each->next_timer);
    }
    return next;
}

void world::run_until(time_point end, const std::function<bool()>& is_done)
{
    is_idle_ = false;
    while (violation_.empty()) {
        while (!events_.empty() && events_.begin()->first.first <= now_) {
            const auto action = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            frozen_time::set(server_time());
            action();
            for (const auto& each : processes)
                each->next_timer.reset();
        }
        if (run_processes())
            continue;
        if (check)
            check();
        if (is_done && is_done())
            return;
        const auto next = next_time();
        if (!next || *next > end) {
            is_idle_ = !next;
            now_ = std::max(now_, end);
            return;
        }
        now_ = std::max(now_, *next);
    }
}

void world::clear()
{
    check = nullptr;
    processes.clear();
    events_.clear();
}

void world::violate(const std::string& what)
{
    note("VIOLATION: ", what);
    if (violation_.empty())
        violation_ = what;
}

void world::print_line() const
{
    *timeline_ << std::fixed << std::setprecision(4) << std::setw(10)
               << std::chrono::duration<double>(now_.time_since_epoch()).count() << " s  " << line_ << std::endl;
}

} // namespace colock::simulation
