// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/rig.hpp"

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

class dice
{
public:
    explicit dice(std::uint32_t seed) : engine_(seed) {}

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

/// Who is inside which key, as the holders themselves say it, and what they found wrong. From any thread.
class visitors
{
public:
    static constexpr std::uint32_t keys = 3;
    /// The key of which all shared locks are one semaphore.
    static constexpr std::uint32_t semaphore = 2;
    static constexpr std::size_t places = 2;

    [[nodiscard]] static std::string key(std::uint32_t number) { return "k" + std::to_string(number % keys); }

    /// One of them, who has to leave before the lock is given back.
    class visit
    {
    public:
        visit(visitors& all, const lock& held);
        visit(visit&& other) noexcept : all_(std::exchange(other.all_, nullptr)), spot_(other.spot_), mode_(other.mode_)
        {
        }
        visit& operator=(visit&&) = delete;
        ~visit();

    private:
        visitors* all_;
        std::size_t spot_;
        lock_mode mode_;
    };

    void note(std::string wrong);
    [[nodiscard]] std::vector<std::string> wrong() const;

private:
    struct spot
    {
        /// Far below zero while the lock is exclusive.
        std::atomic<int> inside{0};
        std::atomic<std::uint64_t> greatest_fence{0};
        /// Guarded by the lock alone: two inside at once are a data race as well.
        std::uint64_t exclusive_fence = 0;
    };

    std::array<spot, keys> spots_;
    mutable std::mutex mutex_;
    std::vector<std::string> wrong_;
};

/// Many coroutines that do everything that can be done with a few keys, at random: lock, try, extend, pass on, release,
/// drop, wait for several, give up. The backend, its pace and its faults are drawn, too, and in some mixes it is shut
/// down in between. All of it follows from the seed, but for the pauses that the library draws by itself, and for what
/// threads make of it.
class random_mix
{
public:
    /// Nothing runs before somebody runs io(), which has nothing left to do when the mix has ended. With faults only on
    /// one thread, where time can be virtual: what they leave behind takes seconds.
    random_mix(std::uint32_t seed, int threads);
    random_mix(const random_mix&) = delete;
    random_mix& operator=(const random_mix&) = delete;

    /// A run of them takes this one, and counts on from there.
    /// \returns what the environment variable COLOCK_SEED says, else any; it is printed, lest a crash conceal it.
    [[nodiscard]] static std::uint32_t first_seed();

    [[nodiscard]] asio::io_context& io() noexcept { return io_; }
    /// All coroutines have ended, and the lockers were shut down.
    [[nodiscard]] bool ended() const noexcept { return unended_ == 0 && closed_; }
    /// Grows as long as anybody gets on.
    [[nodiscard]] std::size_t turns() const noexcept { return turns_; }
    /// For a failure's message.
    [[nodiscard]] std::string describe() const;
    /// That the mix has ended, that all went well in it, and that nothing is left of it.
    void check() const;

private:
    struct setting
    {
        behind kind = behind::memory;
        colock::capabilities can{};
        bool is_slow = false;
        bool has_faults = false;
        bool ends_early = false;
        std::uint32_t workers = 0;
        std::uint32_t rounds = 0;
    };

    void draw_setting(bool with_faults);
    [[nodiscard]] std::shared_ptr<adapter> make_backend();
    [[nodiscard]] step draw_step(operation what);
    [[nodiscard]] acquire_options draw_options(dice& draw, const std::vector<std::string>& keys) const;
    [[nodiscard]] bool is_expected(const boost::system::system_error& failed) const;

    void spawn(asio::awaitable<void> work);
    [[nodiscard]] asio::awaitable<void> shut_down();
    [[nodiscard]] asio::awaitable<void> work(locker by, std::uint32_t seed);
    [[nodiscard]] asio::awaitable<void> take_turn(const locker& by, dice& draw);
    /// Uses what the first is granted, or now and then what the other is granted in time.
    template <class Held, class Operation>
    [[nodiscard]] asio::awaitable<void> take(asio::awaitable<Held> patient, Operation impatient, dice& draw);
    [[nodiscard]] asio::awaitable<void> lock_one(const locker& by, dice& draw);
    [[nodiscard]] asio::awaitable<void> try_one(const locker& by, dice& draw);
    [[nodiscard]] asio::awaitable<void> lock_several(const locker& by, dice& draw);
    [[nodiscard]] asio::awaitable<void> run_body(const locker& by, dice& draw);
    [[nodiscard]] asio::awaitable<void> look_around(const locker& by, dice& draw);
    [[nodiscard]] asio::awaitable<void> use(lock held, dice& draw);
    [[nodiscard]] asio::awaitable<void> use(lock_group held, dice& draw);
    [[nodiscard]] asio::awaitable<void> stay_inside(lock& held, dice& draw);
    [[nodiscard]] asio::awaitable<void> keep_for_a_while(lock held, std::chrono::microseconds span);

    const std::uint32_t seed_;
    dice draw_;
    setting setting_;
    visitors visitors_;
    std::mutex fate_mutex_;
    dice fate_;
    std::atomic<std::size_t> unended_{0};
    std::atomic<std::size_t> turns_{0};
    std::atomic<bool> closed_{false};
    asio::io_context io_;
    std::shared_ptr<adapter> store_;
    std::vector<std::shared_ptr<scripted_adapter>> scripts_;
    std::vector<locker> lockers_;
};

} // namespace colock::testing
