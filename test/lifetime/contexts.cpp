// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests in which a coroutine or a handler of one context uses a locker of another context, and either context is
// destroyed first.
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
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
    virtual_fixture on;
    std::optional<asio::io_context> mine{std::in_place};
    colock::locker other_locker{on.memory};
    lock theirs;
    lock subject;
    lock_group group;
    int ended = 0;
    bool ended_here = false;
    error_code result;

    explicit two_contexts(backend_kind kind) : on(kind) {}

    void end(error_code code)
    {
        ++ended;
        result = code;
        ended_here = mine && mine->get_executor().running_in_this_thread();
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
    void spawn(asio::awaitable<void> verb)
    {
        const auto wrapper = [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        };
        asio::co_spawn(*mine, wrapper(std::move(verb)),
            asio::bind_cancellation_slot(cancel.slot(), [this](const std::exception_ptr& failure) { end(failure); }));
    }
    [[nodiscard]] auto handler()
    {
        return asio::bind_executor(mine->get_executor(),
            asio::bind_cancellation_slot(cancel.slot(), [this](auto why, auto...) { end(std::move(why)); }));
    }
    /// Runs both contexts until nothing is left to do.
    void run()
    {
        for (int rounds = 0; rounds < 20; ++rounds) {
            for (auto* context : {&on.context, &mine}) {
                if (*context)
                    run_ready(**context);
            }
        }
    }
};

using act = std::function<void(two_contexts&)>;

template <class T>
asio::awaitable<void> without_result(asio::awaitable<T> verb)
{
    // The result is destroyed with this frame.
    static_cast<void>(co_await std::move(verb));
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
    act prepare;
    act verb;
    act front;
    /// The error of the awaitable form when the locker's context is destroyed.
    error_code expected = errc::shutting_down;
    /// Whether the operation also waits on the memory backend. If not, it waits only for the answer of a remote
    /// backend.
    bool waits_in_memory = false;
};

void other_locker_holds(two_contexts& in)
{
    in.theirs = in.on.run(in.other_locker.acquire("k", {.ttl = 0ms}));
}

void holds_subject(two_contexts& in)
{
    in.subject = in.on.acquire("mine", {.ttl = 1h});
}

act held_back(operation what, act before = [](two_contexts&) {})
{
    return [what, before](two_contexts& in) {
        before(in);
        in.on.script->always(what, step::hold());
    };
}

std::vector<waiting_call> calls()
{
    const auto holds_group = [](two_contexts& in) { in.group = in.on.run(in.on.locker->acquire_all({"a", "b"})); };
    return {
        {"acquire", other_locker_holds, [](auto& in) { in.spawn(without_result(in.on.locker->acquire("k"))); },
            [](auto& in) { in.on.locker->async_acquire("k", in.handler()); }, errc::shutting_down, true},
        {"acquire, behind others of the locker",
            [](auto& in) {
                other_locker_holds(in);
                in.on.locker->async_acquire("k", [](error_code, lock) {});
                in.on.ready();
            },
            [](auto& in) { in.spawn(without_result(in.on.locker->acquire("k"))); },
            [](auto& in) { in.on.locker->async_acquire("k", in.handler()); }, errc::shutting_down, true},
        {"acquire_all", other_locker_holds,
            [](auto& in) { in.spawn(without_result(in.on.locker->acquire_all({"a", "k"}))); },
            [](auto& in) { in.on.locker->async_acquire_all(std::vector<std::string>{"a", "k"}, in.handler()); },
            errc::shutting_down, true},
        {"lost", holds_subject,
            [](auto& in) {
                in.spawn([](lock& held) -> asio::awaitable<void> {
                    if (co_await held.lost() != lost_reason::shutting_down)
                        throw boost::system::system_error(asio::error::fault);
                }(in.subject));
            },
            [](auto& in) { in.subject.async_lost(in.handler()); }, error_code(), true},
        {"with_lock, waiting", other_locker_holds, [](auto& in) { in.spawn(in.on.locker->with_lock("k", [] {})); },
            [](auto& in) { in.on.locker->async_with_lock("k", [] {}, in.handler()); }, errc::shutting_down, true},
        {"with_lock, in its body", [](auto&) {},
            [](auto& in) { in.spawn(in.on.locker->with_lock("w", &wait_in_body)); },
            [](auto& in) { in.on.locker->async_with_lock("w", &wait_in_body, in.handler()); }, errc::lost, true},
        {"with_lock, releasing", held_back(operation::release),
            [](auto& in) { in.spawn(in.on.locker->with_lock("w", [] {})); },
            [](auto& in) { in.on.locker->async_with_lock("w", [] { return 1; }, in.handler()); }, error_code()},
        {"try_acquire", held_back(operation::create),
            [](auto& in) { in.spawn(without_result(in.on.locker->try_acquire("k"))); },
            [](auto& in) { in.on.locker->async_try_acquire("k", in.handler()); }},
        {"adopt",
            [](auto& in) {
                auto held = in.on.acquire("k");
                const auto ticket = in.on.run(held.detach());
                in.on.script->always(operation::adopt, step::hold());
                in.subject = {};
                in.group = in.on.locker->group(ticket);
            },
            [](auto& in) { in.spawn(without_result(in.on.locker->adopt(in.group.id()))); },
            [](auto& in) { in.on.locker->async_adopt(in.group.id(), in.handler()); }},
        {"release", held_back(operation::release, holds_subject),
            [](auto& in) { in.spawn(in.subject.release(on_failure::raise)); },
            [](auto& in) { in.subject.async_release(on_failure::raise, in.handler()); }},
        {"extend", held_back(operation::extend, holds_subject), [](auto& in) { in.spawn(in.subject.extend(10h)); },
            [](auto& in) { in.subject.async_extend(10h, in.handler()); }},
        {"extend, behind another one",
            [](auto& in) {
                held_back(operation::extend, holds_subject)(in);
                in.subject.async_extend(5h, [](error_code) {});
                in.on.ready();
            },
            [](auto& in) { in.spawn(in.subject.extend(10h)); },
            [](auto& in) { in.subject.async_extend(10h, in.handler()); }},
        {"lock::is_locked", held_back(operation::is_valid, holds_subject),
            [](auto& in) { in.spawn(without_result(in.subject.is_locked())); },
            [](auto& in) { in.subject.async_is_locked(in.handler()); }},
        {"lock::is_locked, behind an extend",
            [](auto& in) {
                held_back(operation::extend, holds_subject)(in);
                in.subject.async_extend(5h, [](error_code) {});
                in.on.ready();
            },
            [](auto& in) { in.spawn(without_result(in.subject.is_locked())); },
            [](auto& in) { in.subject.async_is_locked(in.handler()); }},
        {"detach, behind an extend",
            [](auto& in) {
                held_back(operation::extend, holds_subject)(in);
                in.subject.async_extend(5h, [](error_code) {});
                in.on.ready();
            },
            [](auto& in) { in.spawn(without_result(in.subject.detach())); },
            [](auto& in) { in.subject.async_detach(in.handler()); }},
        {"locker::is_locked", held_back(operation::inspect),
            [](auto& in) { in.spawn(without_result(in.on.locker->is_locked("k"))); },
            [](auto& in) { in.on.locker->async_is_locked("k", in.handler()); }},
        {"list", held_back(operation::list), [](auto& in) { in.spawn(without_result(in.on.locker->list())); },
            [](auto& in) { in.on.locker->async_list(filter{}, list_order::any, in.handler()); }},
        {"purge", held_back(operation::purge), [](auto& in) { in.spawn(without_result(in.on.locker->purge())); },
            [](auto& in) { in.on.locker->async_purge(std::size_t{0}, in.handler()); }},
        {"break_lock", held_back(operation::break_key),
            [](auto& in) { in.spawn(without_result(in.on.locker->break_lock("k"))); },
            [](auto& in) { in.on.locker->async_break_lock("k", in.handler()); }},
        {"lock_group::extend", held_back(operation::extend, holds_group),
            [](auto& in) { in.spawn(without_result(in.group.extend(10h))); }, {}, error_code()},
        {"lock_group::release", held_back(operation::release, holds_group),
            [](auto& in) { in.spawn(without_result(in.group.release())); }, {}, error_code()},
        {"shutdown, while it releases", held_back(operation::release, holds_subject),
            [](auto& in) { in.spawn(without_result(in.on.locker->shutdown(1h))); },
            [](auto& in) { in.on.locker->async_shutdown(1h, in.handler()); }, error_code()},
        {"shutdown, while a body runs",
            [](auto& in) {
                asio::co_spawn(*in.mine,
                    in.on.locker->with_lock("w",
                        []() -> asio::awaitable<void> {
                            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                            co_await wait_in_body();
                        }),
                    [](const std::exception_ptr&) {});
                in.run();
            },
            [](auto& in) { in.spawn(without_result(in.on.locker->shutdown(1h))); },
            [](auto& in) { in.on.locker->async_shutdown(1h, in.handler()); }, error_code(), true},
    };
}

template <class Check>
void for_every_call(Check check)
{
    for (const auto& each : calls()) {
        for (const bool front : {false, true}) {
            for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::elsewhere}) {
                if ((front && !each.front) || (kind == backend_kind::memory && !each.waits_in_memory))
                    continue;
                BOOST_TEST_CONTEXT(each.name << (front ? ", front, " : ", verb, ") << kind)
                {
                    two_contexts in(kind);
                    each.prepare(in);
                    (front ? each.front : each.verb)(in);
                    in.run();
                    BOOST_TEST_REQUIRE(in.ended == 0);
                    check(in, each, front);
                }
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(call_ends_on_its_own_context_when_the_lockers_context_is_destroyed)
{
    for (const bool cancels : {false, true}) {
        for_every_call([&](two_contexts& in, const waiting_call& call, bool front) {
            in.on.context.reset();
            if (cancels)
                in.cancel.emit(asio::cancellation_type::terminal);
            in.run();
            BOOST_TEST(in.ended == 1);
            BOOST_TEST(in.ended_here);
            // The coroutine of an `async_` function runs on the locker's context, and is destroyed with it.
            const error_code expected = front ? errc::shutting_down : call.expected;
            BOOST_TEST((in.result == expected || (cancels && in.result == asio::error::operation_aborted)),
                in.result.message());
        });
    }
}

BOOST_AUTO_TEST_CASE(call_that_begins_after_the_lockers_context_is_destroyed_ends)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        two_contexts in(kind);
        in.on.context.reset();
        in.on.locker->async_acquire("k", in.handler());
        in.run();
        BOOST_TEST(in.ended == 1);
        BOOST_TEST(in.ended_here);
        BOOST_TEST((in.result == errc::shutting_down));
        in.on.locker->async_with_lock("k", [] {}, in.handler());
        in.run();
        BOOST_TEST(in.ended == 2);
        in.spawn(without_result(in.on.locker->acquire("k")));
        in.run();
        BOOST_TEST(in.ended == 3);
        BOOST_TEST((in.result == errc::shutting_down));
    }
}

BOOST_AUTO_TEST_CASE(locker_that_is_made_after_the_adapters_context_is_destroyed_takes_no_acquires)
{
    std::optional<asio::io_context> theirs(std::in_place);
    const auto adapter = memory::make_adapter(theirs->get_executor());
    theirs.reset();
    locker by(adapter);
    asio::io_context mine;
    int ended = 0;
    asio::co_spawn(mine, by.acquire("k"), [&](const std::exception_ptr& failure, lock) {
        ++ended;
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), create_error,
            [](const create_error& why) { return why.code() == errc::shutting_down; });
    });
    mine.run();
    BOOST_TEST(ended == 1);
}

/// Asio destroys the frame of the waiter that is about to be resumed. This passes the lock on to the next waiter, which
/// is destroyed in turn.
BOOST_AUTO_TEST_CASE(waiters_on_strands_are_destroyed_with_the_context_after_a_release)
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

BOOST_AUTO_TEST_CASE(nothing_is_posted_to_a_callers_context_that_is_destroyed)
{
    for (const bool cancels : {false, true}) {
        for_every_call([&](two_contexts& in, const waiting_call&, bool front) {
            in.mine.reset();
            // Asio does not allow to cancel a coroutine whose context is gone.
            if (cancels && front)
                in.cancel.emit(asio::cancellation_type::terminal);
            in.on.ready();
            in.theirs = {};
            if (in.on.script) {
                in.on.script->reset();
                while (in.on.script->deliver())
                    in.on.ready();
            }
            in.on.ready();
            BOOST_TEST(in.ended == 0);
            in.subject = {};
            in.group = {};
            in.on.wind_down();
            // The key can be acquired: no claim without a caller blocks it.
            static_cast<void>(in.on.run(in.other_locker.acquire("k", {.ttl = 1s})));
            in.on.locker.reset();
            in.on.ready();
        });
    }
}

BOOST_AUTO_TEST_CASE(context_of_the_store_is_destroyed_before_the_callers_in_any_order_of_handles)
{
    for (const bool emits : {false, true}) {
        two_contexts in(backend_kind::memory);
        other_locker_holds(in);
        in.spawn(without_result(in.on.locker->acquire("k")));
        in.run();
        // Only the coroutine keeps the locker alive.
        in.on.locker.reset();
        in.run();
        BOOST_TEST(in.ended == 1);
        two_contexts last(backend_kind::memory);
        holds_subject(last);
        last.spawn([](lock held) -> asio::awaitable<void> { static_cast<void>(co_await held.lost()); }(
                                     std::move(last.subject)));
        last.run();
        last.on.locker.reset();
        last.other_locker = colock::locker(memory::make_adapter(last.mine->get_executor()));
        last.on.memory.reset();
        last.on.context.reset();
        if (emits)
            last.cancel.emit(asio::cancellation_type::terminal);
        last.run();
        BOOST_TEST(last.ended == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
