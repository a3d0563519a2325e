// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/name_lookup.hpp"
#include "support/jump.hpp"
#include "support/run.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using remote::name_error;
using remote::name_lookup;
using remote::name_lookup_pool;
using remote::name_result;

namespace {

/// A name service that answers a name when the test says so.
class name_service
{
public:
    name_result ask(const std::string& host)
    {
        std::unique_lock guard(mutex_);
        asked_.push_back(host);
        changed_.notify_all();
        changed_.wait(guard, [&] { return answered_.contains(host); });
        answered_.erase(answered_.find(host));
        if (host == "unknown.test")
            return {.failure = asio::error::host_not_found};
        return {.addresses = {asio::ip::make_address("10.0.0.1")}};
    }
    void answer(const std::string& host)
    {
        const std::lock_guard guard(mutex_);
        answered_.insert(host);
        changed_.notify_all();
    }
    /// Waits until that many names have been asked for.
    void wait_for_questions(std::size_t count)
    {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return asked_.size() == count; });
    }
    std::vector<std::string> asked()
    {
        const std::lock_guard guard(mutex_);
        return asked_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> asked_;
    std::multiset<std::string> answered_;
};

/// A pool whose threads ask a `name_service`.
struct pool_fixture
{
    virtual_clock clock;
    /// One lookup and its result.
    struct started
    {
        std::shared_ptr<name_lookup> lookup;
        std::shared_ptr<std::optional<name_result>> result = std::make_shared<std::optional<name_result>>();

        [[nodiscard]] bool done() const { return result->has_value(); }
    };

    started start(const std::string& host)
    {
        started made{.lookup = std::make_shared<name_lookup>(io.get_executor(), pool)};
        made.lookup->start(host, [result = made.result](name_result found) { *result = std::move(found); });
        return made;
    }
    name_result get(const started& which)
    {
        run_until(io, [&] { return which.done(); });
        return **which.result;
    }
    void wait_for_the_end_of_the_threads() const
    {
        while (pool->thread_count() != 0)
            std::this_thread::yield();
    }
    ~pool_fixture()
    {
        for (const auto& each : service->asked())
            service->answer(each);
    }

    std::shared_ptr<name_service> service = std::make_shared<name_service>();
    std::shared_ptr<name_lookup_pool> pool = std::make_shared<name_lookup_pool>(name_lookup_pool::options{
        .ask = [service = service](const std::string& host) { return service->ask(host); }, .idle_time = 20ms});
    asio::io_context io;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(remote_name_lookup, pool_fixture)

BOOST_AUTO_TEST_CASE(name_is_looked_up_once_for_all_callers)
{
    const auto first = start("a.test");
    service->wait_for_questions(1);
    const auto second = start("a.test");
    service->answer("a.test");
    BOOST_TEST(get(first).addresses.size() == 1U);
    BOOST_TEST(get(second).addresses.size() == 1U);
    BOOST_TEST(service->asked().size() == 1U);
    // An answer that was awaited is not stored.
    const auto third = start("a.test");
    service->answer("a.test");
    get(third);
    BOOST_TEST(service->asked().size() == 2U);
}

BOOST_AUTO_TEST_CASE(failure_of_the_name_service_is_reported)
{
    service->answer("unknown.test");
    BOOST_TEST((get(start("unknown.test")).failure == asio::error::host_not_found));
}

BOOST_AUTO_TEST_CASE(name_is_answered_while_another_name_is_late)
{
    const auto late = start("late.test");
    service->wait_for_questions(1);
    const auto other = start("other.test");
    service->answer("other.test");
    BOOST_TEST(!get(other).failure.failed());
    BOOST_TEST(!late.done());
}

BOOST_AUTO_TEST_CASE(four_threads_are_started_at_most_and_end_when_they_are_idle)
{
    BOOST_TEST(pool->thread_count() == 0U);
    std::vector<started> lookups;
    for (const auto* name : {"1.test", "2.test", "3.test", "4.test", "5.test"})
        lookups.push_back(start(name));
    service->wait_for_questions(4);
    BOOST_TEST(pool->thread_count() == 4U);
    for (const auto* name : {"5.test", "2.test"})
        service->answer(name);
    get(lookups[4]);
    for (const auto* name : {"1.test", "3.test", "4.test"})
        service->answer(name);
    wait_for_the_end_of_the_threads();
    service->answer("6.test");
    get(start("6.test"));
}

BOOST_AUTO_TEST_CASE(cancelled_wait_ends_at_once_and_the_next_caller_gets_the_late_answer)
{
    const auto given_up = start("a.test");
    service->wait_for_questions(1);
    given_up.lookup->cancel();
    BOOST_TEST((get(given_up).failure == name_error::unanswered));
    // Nothing keeps the context from running out of work.
    io.restart();
    io.run();

    service->answer("a.test");
    wait_for_the_end_of_the_threads();
    jump(io, 9s);
    BOOST_TEST(get(start("a.test")).addresses.size() == 1U);
    BOOST_TEST(service->asked().size() == 1U);
    // It is used once.
    const auto next = start("a.test");
    service->wait_for_questions(2);
    service->answer("a.test");
    get(next);
}

BOOST_AUTO_TEST_CASE(answer_that_is_older_than_ten_seconds_is_not_used)
{
    const auto given_up = start("a.test");
    service->wait_for_questions(1);
    given_up.lookup->cancel();
    get(given_up);
    service->answer("a.test");
    wait_for_the_end_of_the_threads();
    jump(io, 10s);
    const auto next = start("a.test");
    service->wait_for_questions(2);
    service->answer("a.test");
    get(next);
}

BOOST_AUTO_TEST_CASE(name_that_waits_longer_than_its_callers_is_looked_up)
{
    for (const auto* name : {"1.test", "2.test", "3.test", "4.test"})
        start(name).lookup->cancel();
    service->wait_for_questions(4);
    const auto queued = start("5.test");
    queued.lookup->cancel();
    get(queued);
    service->answer("1.test");
    service->wait_for_questions(5);
}

BOOST_AUTO_TEST_CASE(context_destroyed_during_a_lookup_leaves_nothing)
{
    const auto captured = std::make_shared<int>();
    {
        asio::io_context dying;
        const auto lookup = std::make_shared<name_lookup>(dying.get_executor(), pool);
        lookup->start("a.test", [captured](const name_result&) {});
        dying.poll();
        service->wait_for_questions(1);
    }
    BOOST_TEST(captured.use_count() == 1);
    service->answer("a.test");
    wait_for_the_end_of_the_threads();
}

BOOST_AUTO_TEST_SUITE_END()
