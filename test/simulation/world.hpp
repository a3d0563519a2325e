// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "simulation/model_adapter.hpp"
#include "simulation/seams.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::simulation {

/// A clock that started at another time, and runs faster or slower than true time.
struct drifting_clock
{
    time_point base{};
    double rate = 1.0;

    [[nodiscard]] time_point at(time_point true_time) const
    {
        const auto elapsed = static_cast<double>(true_time.time_since_epoch().count());
        return base + lease_clock::duration(static_cast<lease_clock::rep>(elapsed * rate));
    }
};

/// A simulated process: its own context, clock and adapters.
struct process
{
    asio::io_context io{1};
    drifting_clock clock;
    std::vector<std::shared_ptr<model_adapter>> links;
    std::shared_ptr<adapter> backend;
    std::vector<std::optional<locker>> lockers;
    /// Time for which the present handler has blocked the process, in an observer.
    lease_clock::duration blocked{0};
    /// The process does nothing before this true time.
    time_point busy_until{};
    /// Total of the blocked times.
    lease_clock::duration blocked_total{0};
    /// When the next timer is due; empty if it is not known.
    std::optional<time_point> next_timer;
};

/// Thrown by some completion handlers of the simulated programs.
struct thrown_by_handler
{
};

/// True time, the network, and the processes, of which one runs at a time.
class world final : public network
{
public:
    world(std::uint64_t seed, std::ostream* timeline) : random_(seed), time_(seed), timeline_(timeline) {}
    world(const world&) = delete;
    world& operator=(const world&) = delete;
    ~world() { clear(); }

    void after(lease_clock::duration delay, std::function<void()> action) override
    {
        const auto started = current_ ? now_ + current_->blocked : now_;
        events_.emplace(
            std::pair(started + std::max(delay, lease_clock::duration::zero()), ++event_count_), std::move(action));
    }
    [[nodiscard]] time_point true_time() const override { return now_; }
    [[nodiscard]] time_point server_time() const override { return server_clock.at(now_); }
    [[nodiscard]] random_source& random() override { return random_; }
    void on_release(const std::string& key) override
    {
        if (current_ && key == blocking_key_)
            violate("the release of " + key + " waited for an observer");
    }

    /// Runs everything until true time `end`, or until nothing is left to do, or until a violation.
    /// \param is_done checked at each point of time
    void run_until(time_point end, const std::function<bool()>& is_done = {});
    /// Sets all clocks to that of a process.
    void show_clock_of(const process& which) const { frozen_time::set(which.clock.at(now_) + which.blocked); }
    /// The process that runs now is blocked for a while by its observer.
    /// \param lost_key the key whose loss the observer has received, if any
    void block(lease_clock::duration span, std::string_view lost_key);
    [[nodiscard]] process* current() noexcept { return current_; }
    /// Whether no event is pending and no process has work.
    [[nodiscard]] bool is_idle() const noexcept { return is_idle_; }
    /// Destroys the processes and pending events.
    void clear();

    template <class... Parts>
    void note(const Parts&... parts)
    {
        line_.clear();
        (add(parts), ...);
        hash_ = hash_text(line_, hash_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count()));
        if (timeline_)
            print_line();
    }
    /// Records the first violation, which ends the run.
    void violate(const std::string& what);

    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    [[nodiscard]] const std::string& violation() const noexcept { return violation_; }

    std::vector<std::unique_ptr<process>> processes;
    drifting_clock server_clock;
    /// Checks that are made at each point of time, after all processes have run.
    std::function<void()> check;
    std::uint64_t handlers = 0;

private:
    [[nodiscard]] bool run_processes();
    [[nodiscard]] std::optional<time_point> next_time();
    void print_line() const;
    [[nodiscard]] static std::uint64_t hash_text(const std::string& text, std::uint64_t start) noexcept
    {
        for (const char each : text)
            start = (start ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
        return start;
    }
    void add(const std::string& part) { line_ += part; }
    void add(const char* part) { line_ += part; }
    void add(std::uint64_t part) { line_ += std::to_string(part); }

    random_source random_;
    const frozen_time time_;
    std::ostream* const timeline_;
    time_point now_{};
    process* current_ = nullptr;
    /// The key whose loss an observer has received in the present handler, in which it blocked.
    std::string blocking_key_;
    std::uint64_t event_count_ = 0;
    std::map<std::pair<time_point, std::uint64_t>, std::function<void()>> events_;
    std::size_t first_process_ = 0;
    bool is_idle_ = false;
    std::string line_;
    std::string violation_;
    std::uint64_t hash_ = 0xcbf29ce484222325U;
};

} // namespace colock::simulation
