// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/random_mix.hpp"

#include "support/driver.hpp"
#include "support/process.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <iostream>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

/// Added to the count of holders by an exclusive lock; its absolute value is greater than any count.
constexpr int exclusive_weight = -1'000'000;

/// A TTL and a retry delay that no test reaches: a waiter that needs a timer of this length has missed its wake-up.
constexpr auto never = 1h;

constexpr auto max_delay = 300us;

template <class... Parts>
std::string text(const Parts&... parts)
{
    std::ostringstream line;
    (line << ... << parts);
    return line.str();
}

} // namespace

exclusion_checker::holder::holder(exclusion_checker& all, const lock& held)
    : all_(&all), key_number_(static_cast<std::size_t>(held.key().back() - '0')), mode_(held.mode())
{
    auto& state = all.key_states_[key_number_];
    const auto fence = held.fence();
    if (mode_ == lock_mode::exclusive) {
        const int before = state.inside.fetch_add(exclusive_weight);
        if (before != 0)
            all.note(text("an exclusive lock on ", held.key(), " at the same time as ", before, " holders"));
        if (fence <= state.greatest_fence)
            all.note(text("fence ", fence, " of ", held.key(), " after ", state.greatest_fence));
        state.exclusive_fence = fence;
    } else {
        const int before = state.inside.fetch_add(1);
        if (before < 0)
            all.note(text("a shared lock on ", held.key(), " at the same time as an exclusive one"));
        if (key_number_ == semaphore && before >= static_cast<int>(semaphore_size))
            all.note(text(before + 1, " holders of the semaphore"));
        if (fence <= state.exclusive_fence)
            all.note(text("fence ", fence, " of ", held.key(), " after an exclusive ", state.exclusive_fence));
    }
    for (auto known = state.greatest_fence.load(); fence > known;) {
        if (state.greatest_fence.compare_exchange_weak(known, fence))
            break;
    }
}

exclusion_checker::holder::~holder()
{
    if (all_)
        all_->key_states_[key_number_].inside.fetch_sub(mode_ == lock_mode::exclusive ? exclusive_weight : 1);
}

void exclusion_checker::note(std::string violation)
{
    const std::lock_guard guard(mutex_);
    violations_.push_back(std::move(violation));
}

std::vector<std::string> exclusion_checker::violations() const
{
    const std::lock_guard guard(mutex_);
    return violations_;
}

std::uint32_t random_mix::first_seed()
{
    const auto seed =
        static_cast<std::uint32_t>(std::stoul(from_environment("COLOCK_SEED", std::to_string(std::random_device{}()))));
    std::cout << "from COLOCK_SEED=" << seed << std::endl;
    return seed;
}

random_mix::random_mix(std::uint32_t seed, int threads)
    : seed_(seed), draw_(seed), delay_random_(draw_.seed()), io_(threads),
      store_(memory::make_adapter(io_.get_executor()))
{
    draw_setting();
    locker_options options{.ttl = never, .retry = retry_policy::fixed(never)};
    // Without events, a waiter has to check again by itself.
    if (!setting_.can.events)
        options.retry = retry_policy::fixed(1ms);
    lockers_.emplace_back(make_backend(), options);
    // A mix with an early shutdown has one locker: the shutdown may release a lock that is in use, and a second
    // locker could then be granted this lock.
    if (!setting_.ends_early && draw_.once_in(2))
        lockers_.emplace_back(make_backend(), options);
    for (std::uint32_t n = 0; n < setting_.workers; ++n)
        spawn(work(lockers_[n % lockers_.size()], draw_.seed()));
    if (setting_.ends_early)
        spawn(shut_down());
}

void random_mix::draw_setting()
{
    constexpr backend_kind kinds[] = {backend_kind::memory, backend_kind::immediate, backend_kind::scripted};
    setting_.kind = kinds[draw_.below(3)];
    setting_.can = store_->traits().capabilities;
    if (setting_.kind != backend_kind::memory) {
        setting_.can.immediate = setting_.kind == backend_kind::immediate;
        setting_.can.fifo = draw_.once_in(2);
        // The store always has a queue. If the core does not know of the queue, groups that are requested in one step
        // would block each other.
        setting_.can.create_all = setting_.can.fifo && setting_.can.create_all;
        setting_.can.events = !draw_.once_in(6);
        setting_.can.expires = !draw_.once_in(6);
        setting_.is_slow = setting_.kind == backend_kind::scripted && draw_.once_in(2);
    }
    setting_.ends_early = draw_.once_in(5);
    setting_.workers = 4 + draw_.below(20);
    setting_.rounds = 10 + draw_.below(20);
}

std::string random_mix::describe() const
{
    const auto stats = lockers_.front().stats();
    return text("COLOCK_SEED=", seed_, ": ", setting_.kind, setting_.can.fifo ? ", fifo" : "",
        setting_.can.events ? "" : ", no events", setting_.can.expires ? "" : ", expires nothing",
        setting_.is_slow ? ", slow" : "", setting_.ends_early ? ", shut down early" : "", "; ", setting_.workers,
        " workers on ", lockers_.size(), " lockers; ", running_.load(), " have not ended, ",
        completed_operations_.load(), " operations completed; of the first locker ", stats.held, " held, ",
        stats.waiting, " waiting, ", stats.settling, " settling, ", stats.attempts, " attempts");
}

std::shared_ptr<adapter> random_mix::make_backend()
{
    if (setting_.kind == backend_kind::memory)
        return store_;
    auto script = std::make_shared<instrumented_adapter>(
        store_, setting_.kind == backend_kind::immediate ? timing::immediate : timing::posted);
    script->set_capabilities(setting_.can);
    if (setting_.is_slow) {
        for (const auto what : {operation::create, operation::release, operation::abandon, operation::extend,
                 operation::is_valid, operation::hand_over})
        {
            script->always(what, [this] { return draw_delay(); });
        }
    }
    scripts_.push_back(script);
    return script;
}

step random_mix::draw_delay()
{
    const std::lock_guard guard(delay_mutex_);
    return delay_random_.once_in(4) ? step::pass() : step::pass().delay(delay_random_.time_below(max_delay));
}

acquire_options random_mix::draw_options(random_source& draw, const std::vector<std::string>& keys) const
{
    acquire_options options;
    if (draw.once_in(3)) {
        options.mode = lock_mode::shared;
        if (std::ranges::find(keys, exclusion_checker::key(exclusion_checker::semaphore)) != keys.end())
            options.max_holders = exclusion_checker::semaphore_size;
    }
    if (draw.once_in(8))
        options.ttl = 0ms;
    switch (draw.below(6)) {
    case 0:
        options.retry = retry_policy::fixed(1ms);
        break;
    case 1:
        options.retry = retry_policy::fixed(1ms).times(3);
        break;
    case 2:
        options.retry = within(1ms + draw.time_below(5ms));
        break;
    default:
        break;
    }
    return options;
}

bool random_mix::is_expected(const boost::system::system_error& failed) const
{
    // A shutdown may end locks and acquires with any error of colock.
    if (setting_.ends_early)
        return dynamic_cast<const error*>(&failed) != nullptr;
    // An acquire may reach its time limit before it is reported that the key is busy.
    constexpr errc ends[] = {errc::retry_exhausted, errc::outcome_unknown, errc::unavailable};
    return std::ranges::any_of(ends, [&](errc end) { return failed.code() == end; });
}

void random_mix::spawn(asio::awaitable<void> work)
{
    ++running_;
    asio::co_spawn(asio::make_strand(io_), std::move(work), [this](std::exception_ptr failure) {
        try {
            if (failure)
                std::rethrow_exception(failure);
        } catch (const std::exception& unexpected) {
            checker_.note(text("thrown: ", unexpected.what()));
        }
        if (--running_ == 0 && !closed_)
            spawn(shut_down());
    });
}

asio::awaitable<void> random_mix::shut_down()
{
    if (setting_.ends_early)
        co_await sleep_for(20 * max_delay);
    for (const auto& by : lockers_) {
        const auto report = co_await by.shutdown(1min);
        if (!report.clean())
            checker_.note("a shutdown was not clean");
        if (report.unproven > 0)
            checker_.note("not all is proven");
    }
    closed_ = true;
}

asio::awaitable<void> random_mix::work(locker by, std::uint32_t seed)
{
    random_source draw(seed);
    for (std::uint32_t round = 0; round < setting_.rounds && !closed_; ++round) {
        try {
            co_await do_random_operation(by, draw);
        } catch (const boost::system::system_error& failed) {
            if (!is_expected(failed))
                checker_.note(text("thrown: ", failed.what()));
        }
        ++completed_operations_;
    }
}

asio::awaitable<void> random_mix::do_random_operation(const locker& by, random_source& draw)
{
    switch (draw.below(8)) {
    case 0:
    case 1:
    case 2:
        return lock_one(by, draw);
    case 3:
        return try_one(by, draw);
    case 4:
        return lock_several(by, draw);
    case 5:
    case 6:
        return run_body(by, draw);
    default:
        return inspect_locks(by, draw);
    }
}

template <class Held, class Operation>
asio::awaitable<void> random_mix::take(asio::awaitable<Held> acquire, Operation cancellable, random_source& draw)
{
    if (draw.once_in(3)) {
        lease_timer timer(co_await asio::this_coro::executor);
        auto [gave_up, held] =
            co_await std::move(cancellable)(asio::cancel_after(timer, draw.time_below(3 * max_delay), asio::as_tuple));
        if (!gave_up)
            co_await use(std::move(held), draw);
    } else {
        co_await use(co_await std::move(acquire), draw);
    }
}

asio::awaitable<void> random_mix::lock_one(const locker& by, random_source& draw)
{
    const auto key = exclusion_checker::key(draw.seed());
    const auto options = draw_options(draw, {key});
    co_await take(by.acquire(key, options), by.async_acquire(key, options), draw);
}

asio::awaitable<void> random_mix::try_one(const locker& by, random_source& draw)
{
    const auto key = exclusion_checker::key(draw.seed());
    auto held = co_await by.try_acquire(key, draw_options(draw, {key}));
    if (!held)
        co_return;
    if (draw.once_in(3))
        spawn(keep_for_a_while(std::move(*held), draw.time_below(max_delay)));
    else
        co_await use(std::move(*held), draw);
}

asio::awaitable<void> random_mix::lock_several(const locker& by, random_source& draw)
{
    std::vector<std::string> keys;
    const auto first = draw.below(exclusion_checker::keys);
    for (std::uint32_t n = 0; n < 2 + draw.below(2); ++n)
        keys.push_back(exclusion_checker::key(first + n));
    const auto options = draw_options(draw, keys);
    co_await take(by.acquire_all(keys, options), by.async_acquire_all(keys, options), draw);
}

asio::awaitable<void> random_mix::run_body(const locker& by, random_source& draw)
{
    const auto key = exclusion_checker::key(draw.seed());
    const auto options = draw_options(draw, {key});
    const auto body = [this, &draw](lock& held) { return stay_inside(held, draw); };
    if (draw.once_in(2)) {
        lease_timer timer(co_await asio::this_coro::executor);
        auto [failure] = co_await by.async_with_lock(
            key, options, body, asio::cancel_after(timer, draw.time_below(2 * max_delay), asio::as_tuple));
        static_cast<void>(failure);
    } else {
        co_await by.with_lock(key, options, body);
    }
}

asio::awaitable<void> random_mix::inspect_locks(const locker& by, random_source& draw)
{
    static_cast<void>(by.stats());
    static_cast<void>(by.held_locks());
    static_cast<void>(by.waiting_acquires());
    static_cast<void>(co_await by.is_locked(exclusion_checker::key(draw.seed())));
    static_cast<void>(co_await by.list());
}

asio::awaitable<void> random_mix::use(lock held, random_source& draw)
{
    co_await stay_inside(held, draw);
    if (draw.once_in(2))
        co_await held.release(draw.once_in(2) ? on_failure::quiet : on_failure::raise);
}

asio::awaitable<void> random_mix::use(lock_group held, random_source& draw)
{
    {
        std::vector<exclusion_checker::holder> inside;
        for (const auto& each : held.locks())
            inside.emplace_back(checker_, each);
        co_await asio::post(asio::deferred);
    }
    if (draw.once_in(2))
        static_cast<void>(co_await held.release());
}

asio::awaitable<void> random_mix::stay_inside(lock& held, random_source& draw)
{
    const exclusion_checker::holder inside(checker_, held);
    if (draw.once_in(4))
        co_await sleep_for(draw.time_below(max_delay));
    else if (draw.once_in(2))
        co_await asio::post(asio::deferred);
    if (held.ttl() > 0ms && draw.once_in(4))
        co_await held.extend(2 * never);
}

asio::awaitable<void> random_mix::keep_for_a_while(lock held, std::chrono::microseconds span)
{
    const exclusion_checker::holder inside(checker_, held);
    lease_timer timer(co_await asio::this_coro::executor);
    auto [gave_up, reason] = co_await held.async_lost(asio::cancel_after(timer, span, asio::as_tuple));
    if (!gave_up && !setting_.ends_early)
        checker_.note(text("lost: ", reason));
}

void random_mix::check() const
{
    BOOST_TEST(ended());
    const auto violations = checker_.violations();
    BOOST_TEST(violations.empty(), violations.size()
                                       << " violations, at first: " << (violations.empty() ? "" : violations.front()));
    for (const auto& by : lockers_) {
        const auto stats = by.stats();
        BOOST_TEST(stats.held == 0U);
        BOOST_TEST(stats.waiting == 0U);
        BOOST_TEST(stats.settling == 0U);
        // An operation usually needs at most three attempts.
        BOOST_TEST(stats.attempts < 30 * completed_operations_ + 1000);
    }
    for (const auto& script : scripts_) {
        for (const auto& breach : script->breaches())
            BOOST_TEST(breach.empty(), "the contract of adapter was broken: " << breach);
    }
    BOOST_TEST(stored_in(*store_).size() == 0U);
}

} // namespace colock::testing
