// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"

#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace colock::testing {

std::shared_ptr<adapter> make_backend(asio::io_context& io, backend_kind kind)
{
    auto store = memory::make_adapter(io.get_executor());
    if (kind == backend_kind::memory)
        return store;
    return std::make_shared<instrumented_adapter>(std::move(store));
}

bool run_pool(asio::io_context& io, std::size_t threads)
{
    std::atomic<std::size_t> running{threads};
    std::promise<void> all_returned;
    auto reached = all_returned.get_future();
    std::vector<std::thread> pool;
    for (std::size_t n = 0; n < threads; ++n) {
        pool.emplace_back([&] {
            io.run();
            if (--running == 0)
                all_returned.set_value();
        });
    }
    const bool in_time = reached.wait_for(std::chrono::seconds(90)) == std::future_status::ready;
    io.stop();
    for (auto& each : pool)
        each.join();
    return in_time;
}

void check_idle(const locker& subject)
{
    const auto stats = subject.stats();
    BOOST_TEST(stats.held == 0U);
    BOOST_TEST(stats.waiting == 0U);
    BOOST_TEST(stats.settling == 0U);
}

} // namespace colock::testing
