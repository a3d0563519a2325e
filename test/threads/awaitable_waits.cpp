// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;

BOOST_AUTO_TEST_SUITE(awaitable_waits)

namespace {

constexpr int rounds = 2000;

/// An adapter whose waits last until they are notified. One timer, `notified_`, notifies all of them; it belongs to the
/// strand.
class notifying_adapter final : public awaitable_adapter
{
public:
    explicit notifying_adapter(const asio::any_io_executor& executor)
        : awaitable_adapter(asio::make_strand(executor)), notified_(this->executor(), lease_clock::time_point::max())
    {
    }

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "telling", .capabilities = {.events = true}};
    }

    void notify()
    {
        asio::post(executor(), [this, self = shared_from_this()] { notified_.cancel(); });
    }

protected:
    asio::awaitable<create_outcome> do_create(claim_ptr) override { co_return create_outcome::granted(0); }
    asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee) override { co_return release_outcome{}; }
    asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
    {
        co_return extend_outcome{};
    }
    asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{true}; }
    asio::awaitable<void> do_wait(claim_ptr, lease_clock::time_point) override
    {
        ++begun_;
        co_await notified_.async_wait(asio::as_tuple(asio::deferred));
        // The strand protects `begun_`, like the timer.
        --begun_;
    }

private:
    lease_timer notified_;
    int begun_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(waits_are_notified_and_cancelled_from_many_threads)
{
    std::atomic<int> woken_waits{0};
    asio::thread_pool pool(4);
    auto backend = std::make_shared<notifying_adapter>(pool.get_executor());
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&, key = "k" + std::to_string(i)] {
            const claim_ptr claim = driver::exclusive(key);
            for (int round = 0; round < rounds; ++round) {
                backend->start_wait(claim, lease_clock::time_point::max(), [&, claim](wait_outcome) { ++woken_waits; });
                if (round % 3 == 0)
                    std::this_thread::yield();
                backend->cancel_wait(*claim);
            }
        });
    }
    threads.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
            backend->notify();
            std::this_thread::yield();
        }
    });
    for (auto& each : threads)
        each.join();
    // No wait is left that would keep the pool running, although nothing notifies the waits any more.
    pool.join();
    BOOST_TEST(woken_waits <= 3 * rounds);
}

BOOST_AUTO_TEST_SUITE_END()
