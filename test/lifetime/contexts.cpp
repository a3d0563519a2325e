// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests in which a coroutine or a handler of one context uses a locker of another context, which is destroyed first.
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(contexts)

namespace {

/// A locker on one context, and its user on another one.
struct two_contexts
{
    asio::cancellation_signal cancel;
    virtual_fixture fixture;
    std::optional<asio::io_context> callers_context{std::in_place};
    colock::locker other_locker{fixture.memory};
    lock others_lock;
    lock held_lock;
    lock_group group;
    int ended = 0;
    bool ended_on_own_context = false;
    error_code result;
    /// Shared with each handler that is neither invoked nor destroyed.
    std::shared_ptr<int> live_handlers = std::make_shared<int>();

    explicit two_contexts(backend_kind kind) : fixture(kind) {}

    void end(error_code code)
    {
        ++ended;
        result = code;
        ended_on_own_context = callers_context && callers_context->get_executor().running_in_this_thread();
    }
    void end(const std::exception_ptr& failure)
    {
        try {
            if (failure)
                std::rethrow_exception(failure);
            end(error_code());
        } catch (const boost::system::system_error& failed) {
            end(failed.code());
        }
    }
    void spawn(asio::awaitable<void> coroutine)
    {
        const auto wrapper = [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        };
        asio::co_spawn(*callers_context, wrapper(std::move(coroutine)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this, live = live_handlers](const std::exception_ptr& failure) { end(failure); }));
    }
    [[nodiscard]] auto handler()
    {
        return asio::bind_executor(callers_context->get_executor(),
            asio::bind_cancellation_slot(
                cancel.slot(), [this, live = live_handlers](auto why, auto...) { end(std::move(why)); }));
    }
    /// Runs both contexts until nothing is left to do.
    void run()
    {
        for (int rounds = 0; rounds < 20; ++rounds) {
            for (auto* context : {&fixture.context, &callers_context}) {
                if (*context)
                    run_ready(**context);
            }
        }
    }
};

using action = std::function<void(two_contexts&)>;

template <class T>
asio::awaitable<void> without_result(asio::awaitable<T> coroutine)
{
    // The result is destroyed with this frame.
    static_cast<void>(co_await std::move(coroutine));
}

asio::awaitable<void> wait_in_body()
{
    lease_timer timer(co_await asio::this_coro::executor, 1min);
    co_await timer.async_wait(asio::deferred);
}

/// An operation that has to wait for something.
struct waiting_call
{
    std::string name;
    action prepare;
    action start_awaitable;
    /// Starts the `async_` form, if it is tested.
    action start_async;
    /// The error of the awaitable form when the locker's context is destroyed.
    error_code expected = errc::shutting_down;
    /// Whether the operation also waits on the memory backend. If not, it waits only for the answer of a remote
    /// backend.
    bool waits_in_memory = false;
};

void acquire_by_other_locker(two_contexts& env)
{
    env.others_lock = env.fixture.run(env.other_locker.acquire("k", {.ttl = 0ms}));
}

void acquire_held_lock(two_contexts& env)
{
    env.held_lock = env.fixture.acquire("mine", {.ttl = 1h});
}

action hold_answers_to(operation what, action before = [](two_contexts&) {})
{
    return [what, before](two_contexts& env) {
        before(env);
        env.fixture.script->always(what, step::hold());
    };
}

std::vector<waiting_call> calls()
{
    const auto acquire_group = [](two_contexts& env) {
        env.group = env.fixture.run(env.fixture.locker->acquire_all({"a", "b"}));
    };
    return {
        {"acquire", acquire_by_other_locker,
            [](auto& env) { env.spawn(without_result(env.fixture.locker->acquire("k"))); },
            [](auto& env) { env.fixture.locker->async_acquire("k", env.handler()); }, errc::shutting_down, true},
        {"acquire, behind others of the locker",
            [](auto& env) {
                acquire_by_other_locker(env);
                env.fixture.locker->async_acquire("k", [](error_code, lock) {});
                env.fixture.ready();
            },
            [](auto& env) { env.spawn(without_result(env.fixture.locker->acquire("k"))); },
            [](auto& env) { env.fixture.locker->async_acquire("k", env.handler()); }, errc::shutting_down, true},
        {"acquire_all", acquire_by_other_locker,
            [](auto& env) { env.spawn(without_result(env.fixture.locker->acquire_all({"a", "k"}))); },
            [](auto& env) { env.fixture.locker->async_acquire_all(std::vector<std::string>{"a", "k"}, env.handler()); },
            errc::shutting_down, true},
        {"lost", acquire_held_lock,
            [](auto& env) {
                env.spawn([](lock& held) -> asio::awaitable<void> {
                    if (co_await held.lost() != lost_reason::shutting_down)
                        throw boost::system::system_error(asio::error::fault);
                }(env.held_lock));
            },
            [](auto& env) { env.held_lock.async_lost(env.handler()); }, error_code(), true},
        {"with_lock, waiting", acquire_by_other_locker,
            [](auto& env) { env.spawn(env.fixture.locker->with_lock("k", [] {})); },
            [](auto& env) { env.fixture.locker->async_with_lock("k", [] {}, env.handler()); }, errc::shutting_down,
            true},
        {"with_lock, in its body", [](auto&) {},
            [](auto& env) { env.spawn(env.fixture.locker->with_lock("w", &wait_in_body)); },
            [](auto& env) { env.fixture.locker->async_with_lock("w", &wait_in_body, env.handler()); }, errc::lost,
            true},
        {"with_lock, releasing", hold_answers_to(operation::release),
            [](auto& env) { env.spawn(env.fixture.locker->with_lock("w", [] {})); },
            [](auto& env) { env.fixture.locker->async_with_lock("w", [] { return 1; }, env.handler()); }, error_code()},
        {"try_acquire", hold_answers_to(operation::create),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->try_acquire("k"))); },
            [](auto& env) { env.fixture.locker->async_try_acquire("k", env.handler()); }},
        {"adopt",
            [](auto& env) {
                auto held = env.fixture.acquire("k");
                const auto ticket = env.fixture.run(held.detach());
                env.fixture.script->always(operation::adopt, step::hold());
                env.held_lock = {};
                env.group = env.fixture.locker->group(ticket);
            },
            [](auto& env) { env.spawn(without_result(env.fixture.locker->adopt(env.group.id()))); },
            [](auto& env) { env.fixture.locker->async_adopt(env.group.id(), env.handler()); }},
        {"release", hold_answers_to(operation::release, acquire_held_lock),
            [](auto& env) { env.spawn(env.held_lock.release(on_failure::raise)); },
            [](auto& env) { env.held_lock.async_release(on_failure::raise, env.handler()); }},
        {"extend", hold_answers_to(operation::extend, acquire_held_lock),
            [](auto& env) { env.spawn(env.held_lock.extend(10h)); },
            [](auto& env) { env.held_lock.async_extend(10h, env.handler()); }},
        {"extend, behind another one",
            [](auto& env) {
                hold_answers_to(operation::extend, acquire_held_lock)(env);
                env.held_lock.async_extend(5h, [](error_code) {});
                env.fixture.ready();
            },
            [](auto& env) { env.spawn(env.held_lock.extend(10h)); },
            [](auto& env) { env.held_lock.async_extend(10h, env.handler()); }},
        {"lock::is_locked", hold_answers_to(operation::is_valid, acquire_held_lock),
            [](auto& env) { env.spawn(without_result(env.held_lock.is_locked())); },
            [](auto& env) { env.held_lock.async_is_locked(env.handler()); }},
        {"lock::is_locked, behind an extend",
            [](auto& env) {
                hold_answers_to(operation::extend, acquire_held_lock)(env);
                env.held_lock.async_extend(5h, [](error_code) {});
                env.fixture.ready();
            },
            [](auto& env) { env.spawn(without_result(env.held_lock.is_locked())); },
            [](auto& env) { env.held_lock.async_is_locked(env.handler()); }},
        {"detach, behind an extend",
            [](auto& env) {
                hold_answers_to(operation::extend, acquire_held_lock)(env);
                env.held_lock.async_extend(5h, [](error_code) {});
                env.fixture.ready();
            },
            [](auto& env) { env.spawn(without_result(env.held_lock.detach())); },
            [](auto& env) { env.held_lock.async_detach(env.handler()); }},
        {"locker::is_locked", hold_answers_to(operation::inspect),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->is_locked("k"))); },
            [](auto& env) { env.fixture.locker->async_is_locked("k", env.handler()); }},
        {"list", hold_answers_to(operation::list),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->list())); },
            [](auto& env) { env.fixture.locker->async_list(filter{}, list_order::any, env.handler()); }},
        {"purge", hold_answers_to(operation::purge),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->purge())); },
            [](auto& env) { env.fixture.locker->async_purge(std::size_t{0}, env.handler()); }},
        {"break_lock", hold_answers_to(operation::break_key),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->break_lock("k"))); },
            [](auto& env) { env.fixture.locker->async_break_lock("k", env.handler()); }},
        {"lock_group::extend", hold_answers_to(operation::extend, acquire_group),
            [](auto& env) { env.spawn(without_result(env.group.extend(10h))); }, {}, error_code()},
        {"lock_group::release", hold_answers_to(operation::release, acquire_group),
            [](auto& env) { env.spawn(without_result(env.group.release())); }, {}, error_code()},
        {"shutdown, while it releases", hold_answers_to(operation::release, acquire_held_lock),
            [](auto& env) { env.spawn(without_result(env.fixture.locker->shutdown(1h))); },
            [](auto& env) { env.fixture.locker->async_shutdown(1h, env.handler()); }, error_code()},
        {"shutdown, while a body runs",
            [](auto& env) {
                asio::co_spawn(*env.callers_context,
                    env.fixture.locker->with_lock("w",
                        []() -> asio::awaitable<void> {
                            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                            co_await wait_in_body();
                        }),
                    [](const std::exception_ptr&) {});
                env.run();
            },
            [](auto& env) { env.spawn(without_result(env.fixture.locker->shutdown(1h))); },
            [](auto& env) { env.fixture.locker->async_shutdown(1h, env.handler()); }, error_code(), true},
    };
}

template <class Check>
void for_every_call(Check check)
{
    for (const auto& each : calls()) {
        for (const bool is_async : {false, true}) {
            for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::other_context}) {
                if ((is_async && !each.start_async) || (kind == backend_kind::memory && !each.waits_in_memory))
                    continue;
                BOOST_TEST_CONTEXT(each.name << (is_async ? ", async_ form, " : ", awaitable form, ") << kind)
                {
                    two_contexts env(kind);
                    each.prepare(env);
                    (is_async ? each.start_async : each.start_awaitable)(env);
                    env.run();
                    BOOST_TEST_REQUIRE(env.ended == 0);
                    check(env, each, is_async);
                }
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(call_ends_when_the_lockers_context_is_destroyed)
{
    for (const bool cancels : {false, true}) {
        for_every_call([&](two_contexts& env, const waiting_call& call, bool is_async) {
            env.fixture.context.reset();
            if (cancels)
                env.cancel.emit(asio::cancellation_type::terminal);
            env.run();
            BOOST_TEST(env.live_handlers.use_count() == 1);
            if (is_async) {
                // Its coroutine and its handler were destroyed with the context.
                BOOST_TEST(env.ended == 0);
                return;
            }
            BOOST_TEST(env.ended == 1);
            BOOST_TEST(env.ended_on_own_context);
            BOOST_TEST((env.result == call.expected || (cancels && env.result == asio::error::operation_aborted)),
                env.result.message());
        });
    }
}

BOOST_AUTO_TEST_CASE(call_that_begins_after_the_lockers_context_is_destroyed_ends)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        two_contexts env(kind);
        env.fixture.context.reset();
        env.fixture.locker->async_acquire("k", env.handler());
        env.run();
        BOOST_TEST(env.ended == 1);
        BOOST_TEST(env.ended_on_own_context);
        BOOST_TEST((env.result == errc::shutting_down));
        env.fixture.locker->async_with_lock("k", [] {}, env.handler());
        env.run();
        BOOST_TEST(env.ended == 2);
        env.spawn(without_result(env.fixture.locker->acquire("k")));
        env.run();
        BOOST_TEST(env.ended == 3);
        BOOST_TEST((env.result == errc::shutting_down));
    }
}

BOOST_AUTO_TEST_CASE(locker_made_after_the_adapters_context_is_destroyed_refuses_acquires)
{
    std::optional<asio::io_context> theirs(std::in_place);
    const auto adapter = memory::make_adapter(theirs->get_executor());
    theirs.reset();
    locker by(adapter);
    asio::io_context callers_context;
    int ended = 0;
    asio::co_spawn(callers_context, by.acquire("k"), [&](const std::exception_ptr& failure, lock) {
        ++ended;
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), create_error,
            [](const create_error& why) { return why.code() == errc::shutting_down; });
    });
    callers_context.run();
    BOOST_TEST(ended == 1);
}

/// The context destroys a waiter that has been granted the lock but not resumed. The lock is then granted to the next
/// waiter, which is destroyed in the same way.
BOOST_AUTO_TEST_CASE(waiters_are_destroyed_with_the_context_after_a_release)
{
    std::optional<asio::io_context> io(std::in_place);
    const colock::locker by(memory::make_adapter(io->get_executor()));
    std::optional<lock> held;
    by.async_acquire("k", [&](error_code, lock granted) { held = std::move(granted); });
    io->poll();
    io->restart();
    int ended = 0;
    for (int i = 0; i < 8; ++i)
        by.async_acquire("k", [&](error_code, lock) { ++ended; });
    io->poll();
    BOOST_TEST(by.stats().waiting == 8U);
    held.reset();
    io.reset();
    BOOST_TEST(ended == 0);
}

BOOST_AUTO_TEST_CASE(context_of_the_store_may_be_destroyed_before_the_callers_context)
{
    for (const bool emits : {false, true}) {
        two_contexts env(backend_kind::memory);
        acquire_by_other_locker(env);
        env.spawn(without_result(env.fixture.locker->acquire("k")));
        env.run();
        // The last handle to the locker is destroyed, so the acquire ends, although its coroutine shares the state.
        env.fixture.locker.reset();
        env.run();
        BOOST_TEST(env.ended == 1);
        two_contexts last(backend_kind::memory);
        acquire_held_lock(last);
        last.spawn([](lock held) -> asio::awaitable<void> { static_cast<void>(co_await held.lost()); }(
                                     std::move(last.held_lock)));
        last.run();
        last.fixture.locker.reset();
        last.other_locker = colock::locker(memory::make_adapter(last.callers_context->get_executor()));
        last.fixture.memory.reset();
        last.fixture.context.reset();
        if (emits)
            last.cancel.emit(asio::cancellation_type::terminal);
        last.run();
        BOOST_TEST(last.ended == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
