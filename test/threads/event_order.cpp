// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <memory>
#include <string_view>

using namespace colock;
using namespace colock::testing;

namespace {

/// Counts events that contradict the events before them. Exclusive locks of one key are granted and released
/// alternately.
struct order_checker : observer
{
    std::atomic<int> inside{0};
    std::atomic<int> granted_count{0};
    std::atomic<int> wrong{0};
    /// Number of calls in progress.
    std::atomic<int> calls{0};

    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        check(++calls == 1);
        ++granted_count;
        check(++inside == 1);
        --calls;
    }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override
    {
        check(++calls == 1);
        check(--inside == 0);
        --calls;
    }
    void check(bool fits) noexcept
    {
        if (!fits)
            ++wrong;
    }
};

asio::awaitable<void> lock_in_turn(locker by, std::size_t seed)
{
    for (std::size_t n = 0; n < 20 * rounds; ++n) {
        auto held = co_await by.acquire("k");
        if ((n + seed) % 3 == 0)
            co_await asio::post(asio::deferred);
        if ((n + seed) % 2 == 0)
            co_await held.release();
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(event_order)

BOOST_AUTO_TEST_CASE(grants_and_releases_of_a_key_are_reported_alternately)
{
    asio::io_context io(static_cast<int>(pool_size));
    const auto checker = std::make_shared<order_checker>();
    const locker by(make_backend(io, backend_kind::memory), {.observer = checker});
    results outcome;
    for (int n = 0; n < workers; ++n)
        asio::co_spawn(io, lock_in_turn(by, static_cast<std::size_t>(n)), outcome.handler());
    BOOST_TEST(run_pool(io));
    BOOST_TEST(outcome.ended == workers);
    BOOST_TEST(outcome.failed == 0);
    BOOST_TEST(checker->granted_count == workers * 20 * rounds);
    BOOST_TEST(checker->inside == 0);
    BOOST_TEST(checker->wrong == 0);
    check_idle(by);
}

BOOST_AUTO_TEST_SUITE_END()
