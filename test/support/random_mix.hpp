// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

/// Pseudo-random numbers that follow from a seed.
class random_source
{
public:
    explicit random_source(std::uint32_t seed) : engine_(seed) {}

    [[nodiscard]] std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
    [[nodiscard]] bool once_in(std::uint32_t times) { return below(times) == 0; }
    [[nodiscard]] std::chrono::microseconds time_below(std::chrono::microseconds bound)
    {
        return std::chrono::microseconds(below(static_cast<std::uint32_t>(bound.count())));
    }
    [[nodiscard]] std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

/// Records which keys have a holder at present, as the holders report it, and the violations that were found.
///
/// Thread safety: safe.
class exclusion_checker
{
public:
    static constexpr std::uint32_t keys = 3;
    /// Number of the key whose shared locks form one semaphore.
    static constexpr std::uint32_t semaphore = 2;
    static constexpr std::size_t semaphore_size = 2;

    [[nodiscard]] static std::string key(std::uint32_t number) { return "k" + std::to_string(number % keys); }

    /// Records the presence of one holder. It has to be destroyed before the lock is released.
    class holder
    {
    public:
        holder(exclusion_checker& all, const lock& held);
        holder(holder&& other) noexcept
            : all_(std::exchange(other.all_, nullptr)), key_number_(other.key_number_), mode_(other.mode_)
        {
        }
        holder& operator=(holder&&) = delete;
        ~holder();

    private:
        exclusion_checker* all_;
        std::size_t key_number_;
        lock_mode mode_;
    };

    void note(std::string violation);
    [[nodiscard]] std::vector<std::string> violations() const;

private:
    struct key_state
    {
        /// Number of holders of a shared lock. Far below zero while the lock is exclusive.
        std::atomic<int> inside{0};
        std::atomic<std::uint64_t> greatest_fence{0};
        /// Not synchronised on purpose: two exclusive holders at once are a data race, which the thread sanitizer
        /// reports.
        std::uint64_t exclusive_fence = 0;
    };

    std::array<key_state, keys> key_states_;
    mutable std::mutex mutex_;
    std::vector<std::string> violations_;
};

/// Many coroutines that do random operations with a few keys: acquire, try, extend, hand over, release, drop, acquire
/// several, cancel. The kind of backend and its speed are random too, and some mixes shut the lockers down
/// early. Everything follows from the seed, except for the random delays of the library and the scheduling of threads.
class random_mix
{
public:
    /// Nothing runs until io() is run. io() has nothing left to do when the mix has ended. The simulator does the same
    /// with faults, on one thread.
    random_mix(std::uint32_t seed, int threads);
    random_mix(const random_mix&) = delete;
    random_mix& operator=(const random_mix&) = delete;

    /// Returns the seed of the first mix. The following mixes use the seeds after it.
    /// \returns the value of the environment variable COLOCK_SEED, or a random number. The seed is printed at once, so
    /// that it is known after a crash.
    [[nodiscard]] static std::uint32_t first_seed();

    [[nodiscard]] asio::io_context& io() noexcept { return io_; }
    /// True if all coroutines have ended and the lockers were shut down.
    [[nodiscard]] bool ended() const noexcept { return running_ == 0 && closed_; }
    /// Describes the state of the mix for the message of a failed test.
    [[nodiscard]] std::string describe() const;
    /// Checks that the mix has ended without a violation, and that no lock is left in the store.
    void check() const;

private:
    struct setting
    {
        backend_kind kind = backend_kind::memory;
        colock::capabilities can{};
        bool is_slow = false;
        bool ends_early = false;
        std::uint32_t workers = 0;
        std::uint32_t rounds = 0;
    };

    void draw_setting();
    [[nodiscard]] std::shared_ptr<adapter> make_backend();
    [[nodiscard]] step draw_delay();
    [[nodiscard]] acquire_options draw_options(random_source& draw, const std::vector<std::string>& keys) const;
    [[nodiscard]] bool is_expected(const boost::system::system_error& failed) const;

    void spawn(asio::awaitable<void> work);
    [[nodiscard]] asio::awaitable<void> shut_down();
    [[nodiscard]] asio::awaitable<void> work(locker by, std::uint32_t seed);
    [[nodiscard]] asio::awaitable<void> do_random_operation(const locker& by, random_source& draw);
    /// Acquires, then uses the lock or group. Now and then runs `cancellable` in place of `acquire`, and cancels it
    /// after a random time.
    template <class Held, class Operation>
    [[nodiscard]] asio::awaitable<void> take(asio::awaitable<Held> acquire, Operation cancellable, random_source& draw);
    [[nodiscard]] asio::awaitable<void> lock_one(const locker& by, random_source& draw);
    [[nodiscard]] asio::awaitable<void> try_one(const locker& by, random_source& draw);
    [[nodiscard]] asio::awaitable<void> lock_several(const locker& by, random_source& draw);
    [[nodiscard]] asio::awaitable<void> run_body(const locker& by, random_source& draw);
    [[nodiscard]] asio::awaitable<void> inspect_locks(const locker& by, random_source& draw);
    [[nodiscard]] asio::awaitable<void> use(lock held, random_source& draw);
    [[nodiscard]] asio::awaitable<void> use(lock_group held, random_source& draw);
    [[nodiscard]] asio::awaitable<void> stay_inside(lock& held, random_source& draw);
    [[nodiscard]] asio::awaitable<void> keep_for_a_while(lock held, std::chrono::microseconds span);

    const std::uint32_t seed_;
    random_source draw_;
    setting setting_;
    exclusion_checker checker_;
    std::mutex delay_mutex_;
    random_source delay_random_;
    std::atomic<std::size_t> running_{0};
    std::atomic<std::size_t> completed_operations_{0};
    std::atomic<bool> closed_{false};
    asio::io_context io_;
    std::shared_ptr<adapter> store_;
    std::vector<std::shared_ptr<instrumented_adapter>> scripts_;
    std::vector<locker> lockers_;
};

} // namespace colock::testing
