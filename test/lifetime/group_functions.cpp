// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The functions of groups: completion tokens, the first loss, and with_lock of several keys.
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

constexpr backend_kind all_kinds[] = {backend_kind::memory, backend_kind::scripted, backend_kind::immediate};

lock_group acquire_group(virtual_fixture& env, std::vector<std::string> keys, acquire_options options = {})
{
    return env.run(env.locker->acquire_all(std::move(keys), std::move(options)));
}

} // namespace

BOOST_AUTO_TEST_SUITE(group_functions)

BOOST_AUTO_TEST_CASE(every_function_of_a_group_takes_a_completion_token)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        auto group = acquire_group(env, {"a", "b"});
        std::optional<error_code> acquired;
        group.async_acquire("c", [&](error_code why) { acquired = why; });
        BOOST_TEST(!acquired.has_value());
        env.ready();
        BOOST_TEST((acquired == error_code()));
        BOOST_TEST(group.size() == 3U);

        auto extended = group.async_extend(1h, asio::use_future);
        env.ready();
        BOOST_TEST(extended.get().size() == 3U);
        for (const auto& each : group.locks())
            BOOST_TEST((each.ttl() == 1h));

        std::optional<lost_lock> lost;
        group.async_lost([&](error_code why, lost_lock first) {
            BOOST_TEST(!why);
            lost = std::move(first);
        });
        std::vector<lock_report> reports;
        group.async_release([&](error_code why, std::vector<lock_report> all) {
            BOOST_TEST(!why);
            reports = std::move(all);
        });
        env.ready();
        BOOST_TEST(reports.size() == 3U);
        BOOST_TEST_REQUIRE(lost.has_value());
        BOOST_TEST((lost->reason == lost_reason::released));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(acquire_of_a_key_that_the_group_holds_is_rejected)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        auto group = acquire_group(env, {"a", "b"});
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(group.acquire("a")));
        std::optional<error_code> result;
        group.async_acquire("a", [&](error_code why) { result = why; });
        env.ready();
        BOOST_TEST((result == error_code(errc::invalid_options)));
        BOOST_TEST(group.size() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(group_without_locks_rejects_to_wait_for_a_loss)
{
    virtual_fixture env;
    const lock_group none;
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(none.lost()));
    BOOST_CHECK_THROW(none.async_lost([](error_code, lost_lock) {}), validation_error);
    lock_group moved_from;
    BOOST_CHECK_THROW(moved_from.async_release([](error_code, std::vector<lock_report>) {}), validation_error);
    const auto made = env.locker->group();
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(made.lost()));
}

BOOST_AUTO_TEST_CASE(acquire_of_a_destroyed_context_adds_no_lock_to_the_group)
{
    asio::io_context callers;
    virtual_fixture env(backend_kind::scripted);
    auto group = acquire_group(env, {"a"});
    env.script->next(operation::create, step::hold());
    auto live = std::make_shared<int>();
    group.async_acquire("b", asio::bind_executor(callers, [live](error_code) { BOOST_ERROR("invoked"); }));
    env.ready();
    env.context.reset();
    callers.run();
    BOOST_TEST(live.use_count() == 1);
    BOOST_TEST(group.size() == 1U);
}

BOOST_AUTO_TEST_CASE(first_loss_names_the_key_and_the_reason)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        auto group = acquire_group(env, {"a", "b", "c"}, {.ttl = 1h});
        auto first = env.start(group.lost());
        auto second = env.start(group.lost());
        env.ready();
        BOOST_TEST(!first.done());
        env.run(env.locker->break_lock("b"));
        env.ready();
        for (auto* each : {&first, &second}) {
            const auto lost = each->get(env.io());
            BOOST_TEST(lost.key == "b");
            BOOST_TEST((lost.reason == lost_reason::broken));
        }
        // A loss in the past is reported at once.
        BOOST_TEST(env.run(group.lost()).key == "b");
        group = {};
        env.wind_down();
    }
}

BOOST_AUTO_TEST_CASE(release_of_one_lock_without_ttl_ends_the_wait)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        auto group = acquire_group(env, {"a", "b"}, {.ttl = 0ms});
        auto waiting = env.start(group.lost());
        env.ready();
        static_cast<void>(group.take("b"));
        env.ready();
        BOOST_TEST_REQUIRE(waiting.done());
        BOOST_TEST(waiting.get(env.io()).key == "b");
        env.wind_down();
    }
}

BOOST_AUTO_TEST_CASE(with_lock_passes_the_group_to_its_body_and_releases_it)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        const auto sum = env.run(env.locker->with_lock({"a", {"b", lock_mode::shared}}, [&](lock_group& held) {
            BOOST_TEST(held.held());
            BOOST_TEST((held.locks()[1].mode() == lock_mode::shared));
            return static_cast<int>(held.size());
        }));
        BOOST_TEST(sum == 2);
        BOOST_TEST(env.stored().empty());
        env.run(env.locker->with_lock(std::vector<std::string>{"a", "b"}, {.ttl = 5s}, []() -> asio::awaitable<void> {
            // The leases are renewed.
            co_await sleep_for(0s);
        }));
        std::exception_ptr thrown;
        env.locker->async_with_lock(
            {"a", "b"}, [](lock_group&) { throw std::runtime_error("no"); },
            [&](std::exception_ptr failure) { thrown = std::move(failure); });
        env.ready();
        BOOST_CHECK_THROW(std::rethrow_exception(thrown), std::runtime_error);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(with_lock_renews_all_leases)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        auto working = env.start(env.locker->with_lock({"a", "b"}, {.ttl = 3s}, [] { return sleep_for(1min); }));
        env.advance_by_steps(61s, 500ms);
        BOOST_TEST_REQUIRE(working.done());
        working.get(env.io());
        BOOST_TEST(env.locker->stats().renewals > 80U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(loss_of_any_lock_cancels_the_body_and_is_named)
{
    for (const auto kind : all_kinds) {
        for (const std::string lost_key : {"a", "b", "c"}) {
            virtual_fixture env(kind);
            int cancellations = 0;
            auto working = env.start(
                env.locker->with_lock({"a", "b", "c"}, {.ttl = 1h}, [&](lock_group&) -> asio::awaitable<void> {
                    try {
                        co_await sleep_for(30min);
                    } catch (const boost::system::system_error&) {
                        ++cancellations;
                        throw;
                    }
                }));
            env.ready();
            env.run(env.locker->break_lock(lost_key));
            env.wind_down();
            BOOST_TEST_REQUIRE(working.done());
            const auto thrown = required_error<lost_error>([&] { working.get(env.io()); });
            BOOST_TEST(thrown.key() == lost_key);
            BOOST_TEST(cancellations == 1);
            BOOST_TEST(env.stored().empty());
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(each_reason_cancels_the_body_of_several_locks_once)
{
    for (const auto kind : all_kinds) {
        virtual_fixture env(kind);
        int cancellations = 0;
        const acquire_options options{.ttl = 10s, .renewal = renewal::manual};
        auto working =
            env.start(env.locker->with_lock({"a", "b", "c"}, options, [&](lock_group& held) -> asio::awaitable<void> {
                // The stop margins and the ends of these leases are reached at different times.
                auto later = held.take("b");
                co_await later.extend(20s);
                co_await asio::this_coro::throw_if_cancelled(false);
                lease_timer timer(co_await asio::this_coro::executor, 30s);
                for (error_code why = asio::error::operation_aborted; why;) {
                    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
                    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, why));
                    cancellations += why ? 1 : 0;
                }
            }));
        env.advance_by_steps(31s, 100ms);
        BOOST_TEST_REQUIRE(working.done());
        COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
        // For the stop margin and for the loss.
        BOOST_TEST(cancellations == 2);
        env.wind_down();
    }
}

BOOST_AUTO_TEST_CASE(loss_in_one_group_does_not_resume_the_callers_of_others)
{
    constexpr int group_count = 50;
    virtual_fixture env;
    std::vector<lock_group> groups;
    int lost_count = 0;
    for (int n = 0; n < group_count; ++n)
        groups.push_back(acquire_group(env, {"a" + std::to_string(n), "b" + std::to_string(n)}));
    for (auto& each : groups)
        each.async_lost([&](error_code why, const lost_lock&) {
            BOOST_TEST(!why);
            ++lost_count;
        });
    env.ready();
    for (auto& each : groups) {
        each = {};
        // The callers of all other groups would need a handler each.
        int handlers = 0;
        while (env.io().poll_one() > 0)
            ++handlers;
        BOOST_TEST(handlers < 5);
    }
    BOOST_TEST(lost_count == group_count);
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
