// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// How a verb is called.
enum class family : unsigned char
{
    /// The awaitable, from a coroutine that lets every cancellation type through.
    verb,
    /// The `async_` front, with a callback.
    front,
};

std::ostream& operator<<(std::ostream& out, family how)
{
    return out << (how == family::verb ? "verb" : "front");
}

/// What one scenario plays on.
struct stage
{
    rig on;
    asio::cancellation_signal cancel;
    std::size_t moved = 0;
    /// How often the operation completed, and with what.
    int completions = 0;
    error_code result;
    /// Another locker on the same store: another process.
    std::optional<colock::locker> rival;
    std::vector<lock> others;
    lock subject;
    lock_group group;

    explicit stage(behind kind) : on(kind), rival(on.memory) {}

    void complete(std::exception_ptr failure)
    {
        ++completions;
        if (!failure)
            return;
        try {
            std::rethrow_exception(std::move(failure));
        } catch (const boost::system::system_error& failed) {
            result = failed.code();
        }
    }

    template <class T>
    void spawn(asio::awaitable<T> verb)
    {
        const auto wrapper = [](asio::awaitable<T> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            // A lock that is granted dies with this frame.
            static_cast<void>(co_await std::move(inner));
        };
        asio::co_spawn(on.io(), wrapper(std::move(verb)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }
    void spawn(asio::awaitable<void> verb)
    {
        const auto wrapper = [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        };
        asio::co_spawn(on.io(), wrapper(std::move(verb)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }

    struct coded
    {
        stage* self;
        template <class... Result>
        void operator()(error_code code, Result...)
        {
            ++self->completions;
            self->result = code;
        }
        template <class... Result>
        void operator()(std::exception_ptr failure, Result...)
        {
            self->complete(std::move(failure));
        }
    };
    [[nodiscard]] auto handler() { return asio::bind_cancellation_slot(cancel.slot(), coded{this}); }

    /// Waits for the key, and drops it in the next handler.
    void join_queue(acquire_options options = {})
    {
        asio::co_spawn(
            on.io(),
            [](locker by, acquire_options how) -> asio::awaitable<void> {
                const auto held = co_await by.acquire("k", std::move(how));
                co_await asio::post(asio::deferred);
            }(*on.locker, std::move(options)),
            asio::detached);
    }
};

using act = std::function<void(stage&)>;

/// One operation, from when it is started to its end.
struct scenario
{
    std::string name;
    act prepare;
    act verb;
    /// Empty where there is none.
    act front;
    /// What the world does whenever the context has nothing left to run, one after the other.
    std::vector<act> moves;
};

void nothing(stage&) {}

void rival_holds(stage& on)
{
    on.others.push_back(run_coro(on.on.io(), on.rival->acquire("k")));
}

void mate_holds(stage& on)
{
    on.others.push_back(on.on.acquire("k"));
}

void others_release(stage& on)
{
    on.others.clear();
}

void hold_subject(stage& on)
{
    on.subject = on.on.acquire("k", {.ttl = 10h});
}

asio::awaitable<int> busy_body(lock&)
{
    for (int n = 0; n < 3; ++n)
        co_await asio::post(asio::deferred);
    co_return 1;
}

asio::awaitable<void> sleeping_body(lock&)
{
    lease_timer timer(co_await asio::this_coro::executor, 1min);
    co_await timer.async_wait(asio::deferred);
}

asio::awaitable<void> releasing_body(lock& held)
{
    co_await held.release();
    co_await asio::post(asio::deferred);
}

const acquire_options shared{.mode = lock_mode::shared};

std::vector<scenario> make_scenarios()
{
    const auto acquire_verb = [](stage& s) { s.spawn(s.on.locker->acquire("k")); };
    const auto acquire_front = [](stage& s) { s.on.locker->async_acquire("k", s.handler()); };
    const auto shared_verb = [](stage& s) { s.spawn(s.on.locker->acquire("k", shared)); };
    const auto shared_front = [](stage& s) { s.on.locker->async_acquire("k", shared, s.handler()); };
    const auto try_verb = [](stage& s) { s.spawn(s.on.locker->try_acquire("k")); };
    const auto try_front = [](stage& s) { s.on.locker->async_try_acquire("k", s.handler()); };
    const auto all_verb = [](stage& s) { s.spawn(s.on.locker->acquire_all({"a", "k", "z"})); };
    const auto all_front = [](stage& s) {
        s.on.locker->async_acquire_all(std::vector<std::string>{"a", "k", "z"}, s.handler());
    };
    const auto with_verb = [](auto body) {
        return [body](stage& s) { s.spawn(s.on.locker->with_lock("k", {.ttl = 10h}, body)); };
    };
    const auto with_front = [](auto body) {
        return [body](stage& s) { s.on.locker->async_with_lock("k", {.ttl = 10h}, body, s.handler()); };
    };
    const auto skip_minutes = [](stage& s) { s.on.clock.advance(s.on.io(), 2min); };
    const auto local_queue = [](stage& s) {
        mate_holds(s);
        s.join_queue();
        s.join_queue(shared);
        s.on.ready();
    };
    const auto hold_group = [](stage& s) { s.group = s.on.run(s.on.locker->acquire_all({"a", "k", "z"})); };
    const auto busy_locker = [](stage& s) {
        hold_subject(s);
        s.join_queue();
        s.others.push_back(run_coro(s.on.io(), s.rival->acquire("r")));
        asio::co_spawn(
            s.on.io(),
            [](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire("r")); }(*s.on.locker),
            asio::detached);
        s.on.ready();
    };
    return {
        {"acquire, free", nothing, acquire_verb, acquire_front, {}},
        {"acquire, held by another process", rival_holds, acquire_verb, acquire_front, {others_release}},
        {"acquire, held by the same locker", mate_holds, acquire_verb, acquire_front, {others_release}},
        {"acquire, behind local waiters", local_queue, acquire_verb, acquire_front, {others_release}},
        {"acquire, behind local waiters of a lock held elsewhere",
            [](stage& s) {
                rival_holds(s);
                s.join_queue();
                s.join_queue();
                s.on.ready();
            },
            acquire_verb, acquire_front, {others_release}},
        {"acquire, shared, free", nothing, shared_verb, shared_front, {}},
        {"acquire, shared, behind others",
            [](stage& s) {
                rival_holds(s);
                s.join_queue(shared);
                s.on.ready();
            },
            shared_verb, shared_front, {others_release}},
        {"try_acquire, free", nothing, try_verb, try_front, {}},
        {"try_acquire, busy", rival_holds, try_verb, try_front, {}},
        {"with_lock, free", nothing, with_verb(busy_body), with_front(busy_body), {}},
        {"with_lock, held by another process", rival_holds, with_verb(busy_body), with_front(busy_body),
            {others_release}},
        {"with_lock, held by the same locker", mate_holds, with_verb(busy_body), with_front(busy_body),
            {others_release}},
        {"with_lock, sleeping body", nothing, with_verb(sleeping_body), with_front(sleeping_body), {skip_minutes}},
        {"with_lock, releasing body", nothing, with_verb(releasing_body), with_front(releasing_body), {}},
        {"acquire_all, free", nothing, all_verb, all_front, {}},
        {"acquire_all, one held by another process", rival_holds, all_verb, all_front, {others_release}},
        {"acquire_all, one held by the same locker", mate_holds, all_verb, all_front, {others_release}},
        {"group.acquire",
            [](stage& s) {
                rival_holds(s);
                s.group = s.on.run(s.on.locker->acquire_all({"a", "b"}));
            },
            [](stage& s) { s.spawn(s.group.acquire("k")); }, {}, {others_release}},
        {"group.extend", hold_group, [](stage& s) { s.spawn(s.group.extend(20s)); }, {}, {}},
        {"group.release", hold_group, [](stage& s) { s.spawn(s.group.release()); }, {}, {}},
        {"extend", hold_subject, [](stage& s) { s.spawn(s.subject.extend(20s)); },
            [](stage& s) { s.subject.async_extend(20s, s.handler()); }, {}},
        {"release", hold_subject, [](stage& s) { s.spawn(s.subject.release()); },
            [](stage& s) { s.subject.async_release(s.handler()); }, {}},
        {"release to a local waiter",
            [](stage& s) {
                hold_subject(s);
                s.join_queue();
                s.on.ready();
            },
            [](stage& s) { s.spawn(s.subject.release(on_failure::raise)); },
            [](stage& s) { s.subject.async_release(on_failure::raise, s.handler()); }, {}},
        {"lost", hold_subject, [](stage& s) { s.spawn(s.subject.lost()); },
            [](stage& s) { s.subject.async_lost(s.handler()); },
            {[](stage& s) { static_cast<void>(run_coro(s.on.io(), s.rival->break_lock("k"))); },
                [](stage& s) { s.on.clock.advance(s.on.io(), 20h); }}},
        {"lock.is_locked", hold_subject, [](stage& s) { s.spawn(s.subject.is_locked()); },
            [](stage& s) { s.subject.async_is_locked(s.handler()); }, {}},
        {"is_locked", hold_subject, [](stage& s) { s.spawn(s.on.locker->is_locked("k")); },
            [](stage& s) { s.on.locker->async_is_locked("k", s.handler()); }, {}},
        {"list", hold_subject, [](stage& s) { s.spawn(s.on.locker->list()); },
            [](stage& s) { s.on.locker->async_list({}, s.handler()); }, {}},
        {"purge", hold_subject, [](stage& s) { s.spawn(s.on.locker->purge()); },
            [](stage& s) { s.on.locker->async_purge(0, s.handler()); }, {}},
        {"break_lock", hold_subject, [](stage& s) { s.spawn(s.on.locker->break_lock("k")); },
            [](stage& s) { s.on.locker->async_break_lock("k", s.handler()); }, {}},
        {"shutdown", busy_locker, [](stage& s) { s.spawn(s.on.locker->shutdown(1min)); },
            [](stage& s) { s.on.locker->async_shutdown(1min, s.handler()); }, {}},
        {"shutdown with a body that runs",
            [](stage& s) {
                s.on.locker->async_with_lock("k", {.ttl = 10h}, sleeping_body, [](std::exception_ptr) {});
                s.on.ready();
            },
            [](stage& s) { s.spawn(s.on.locker->shutdown(1min)); },
            [](stage& s) { s.on.locker->async_shutdown(1min, s.handler()); }, {}},
    };
}

const std::vector<scenario>& scenarios()
{
    static const auto all = make_scenarios();
    return all;
}

/// Runs one handler or makes one move; false if there is nothing more.
bool one_step(const scenario& scene, stage& on)
{
    on.on.io().restart();
    if (on.on.io().poll_one() != 0)
        return true;
    if (on.completions > 0 || on.moved == scene.moves.size())
        return false;
    scene.moves[on.moved++](on);
    return true;
}

void begin(const scenario& scene, family how, stage& on)
{
    (how == family::verb ? scene.verb : scene.front)(on);
    BOOST_TEST(on.completions == 0, "completed inside the call that starts it");
}

/// Starts the operation and makes `steps` steps. False if it came to rest before.
bool play(const scenario& scene, family how, stage& on, std::size_t steps)
{
    scene.prepare(on);
    begin(scene, how, on);
    for (std::size_t step = 0; step < steps; ++step) {
        if (!one_step(scene, on))
            return false;
    }
    return true;
}

template <class Check>
void for_every_scenario(Check check)
{
    for (const auto& scene : scenarios()) {
        for (const auto how : {family::verb, family::front}) {
            if (how == family::front && !scene.front)
                continue;
            BOOST_TEST_CONTEXT(scene.name << ", " << how)
            {
                check(scene, how);
            }
        }
    }
}

constexpr std::size_t far_too_many = 500;

void cancel_at_every_step(const scenario& scene, family how, behind kind, asio::cancellation_type type)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_REQUIRE(steps < far_too_many);
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            stage on(kind);
            reached = play(scene, how, on, steps);
            if (reached) {
                on.cancel.emit(type);
                on.on.ready();
                // Promptly: whoever stands in the way has not moved. Before its first step, the verb's own caller has
                // not said yet which types it lets through.
                if (steps > 0 || how == family::front)
                    BOOST_TEST(on.completions == 1);
            }
            while (one_step(scene, on)) {
            }
            on.others.clear();
            on.on.wind_down();
            BOOST_TEST(on.completions == 1);
            if (on.result)
                BOOST_TEST((on.result == asio::error::operation_aborted), on.result.message());
            on.subject = {};
            on.group = {};
            on.on.wind_down();
            on.on.check_clean();
            if (!reached)
                BOOST_TEST(!on.result, "without a cancellation it ends with " << on.result.message());
        }
    }
}

void cancel_everything(behind kind)
{
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        for_every_scenario([&](const scenario& scene, family how) {
            BOOST_TEST_CONTEXT("type " << static_cast<unsigned>(type))
            {
                cancel_at_every_step(scene, how, kind, type);
            }
        });
    }
}

/// What is there when the context dies.
enum class survivors : unsigned char
{
    handles,
    none,
};

void destroy_at_every_step(const scenario& scene, family how, behind kind, survivors alive)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_REQUIRE(steps < far_too_many);
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            stage on(kind);
            reached = play(scene, how, on, steps);
            if (alive == survivors::none) {
                on.others.clear();
                on.subject = {};
                on.rival.reset();
                on.on.locker.reset();
                on.on.script.reset();
                on.on.memory.reset();
            }
            on.on.context.reset();
            BOOST_TEST(on.completions <= 1);
            if (alive == survivors::handles) {
                // What outlives its context is inert, not broken.
                asio::io_context other;
                BOOST_CHECK_NO_THROW(run_coro(other, on.subject.release()));
                BOOST_TEST(!on.subject.held());
                BOOST_TEST(!on.on.locker->get_executor());
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, on.on.locker->acquire("k")));
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, on.on.locker->try_acquire("k")));
                BOOST_TEST(on.on.locker->stats().settling == 0U);
            }
        }
    }
}

void destroy_everything(behind kind)
{
    for (const auto alive : {survivors::handles, survivors::none}) {
        for_every_scenario([&](const scenario& scene, family how) {
            BOOST_TEST_CONTEXT((alive == survivors::handles ? "handles survive" : "nothing survives"))
            {
                destroy_at_every_step(scene, how, kind, alive);
            }
        });
    }
}

/// Plays to the end, and lets what is held back arrive whenever nothing else is left to do.
void play_out(const scenario& scene, stage& on)
{
    auto& script = *on.on.script;
    for (int rounds = 0; rounds < 200; ++rounds) {
        while (one_step(scene, on)) {
        }
        if (on.completions > 0 && script.held() == 0 && on.on.idle())
            return;
        if (rounds % 3 == 2 && script.deliver())
            continue;
        on.on.clock.advance(on.on.io(), 1s);
    }
}

struct fault
{
    std::string name;
    step how;
    std::set<operation> of;
};

std::vector<fault> faults()
{
    const std::set<operation> all{operation::create, operation::release, operation::abandon, operation::extend,
        operation::is_valid, operation::hand_over, operation::inspect, operation::break_key, operation::list,
        operation::purge};
    return {
        {"request lost", step::lose_request(), all},
        {"reply lost", step::lose_reply(), all},
        {"unavailable", step::fail(errc::unavailable), all},
        {"access denied", step::fail(errc::access_denied), all},
        {"held back", step::hold(), all},
        {"unknown, and arrives late", step::hold_unknown(),
            {operation::create, operation::release, operation::extend, operation::hand_over}},
        {"slow", step::pass().delay(3s), all},
        {"slower than the ttl", step::pass().delay(40s), all},
        {"busy", step::busy(), {operation::create, operation::hand_over}},
        {"not held", step::not_held(), {operation::extend, operation::is_valid}},
        {"deaf", step::hold(), {operation::wait}},
    };
}

/// The operations that the backend is asked for when nothing goes wrong.
std::vector<call> calls_of(const scenario& scene, family how)
{
    stage on(behind::scripted);
    scene.prepare(on);
    on.on.script->forget_calls();
    begin(scene, how, on);
    while (one_step(scene, on)) {
    }
    on.others.clear();
    on.subject = {};
    on.group = {};
    on.on.ready();
    return on.on.script->calls();
}

void fail_at_every_call(const scenario& scene, family how)
{
    const auto calls = calls_of(scene, how);
    std::array<std::size_t, operation_count> earlier{};
    for (std::size_t index = 0; index < calls.size(); ++index) {
        const auto what = calls[index].what;
        const auto before = earlier[static_cast<std::size_t>(what)]++;
        for (const auto& each : faults()) {
            if (!each.of.contains(what))
                continue;
            BOOST_TEST_CONTEXT("call " << index << ", " << to_string(what) << ": " << each.name)
            {
                stage on(behind::scripted);
                scene.prepare(on);
                for (std::size_t n = 0; n < before; ++n)
                    on.on.script->next(what, step::pass());
                on.on.script->next(what, each.how);
                begin(scene, how, on);
                play_out(scene, on);
                BOOST_TEST(on.completions == 1);
                on.others.clear();
                on.subject = {};
                on.group = {};
                play_out(scene, on);
                BOOST_TEST(on.on.script->unused() == 0U);
                on.on.check_clean();
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(faults_at_every_call)

BOOST_AUTO_TEST_CASE(leave_nothing_behind)
{
    for_every_scenario([](const scenario& scene, family how) { fail_at_every_call(scene, how); });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(cancelled_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    cancel_everything(behind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    cancel_everything(behind::scripted);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(context_destroyed_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    destroy_everything(behind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    destroy_everything(behind::scripted);
}

BOOST_AUTO_TEST_CASE(over_a_backend_that_lives_on)
{
    destroy_everything(behind::elsewhere);
}

BOOST_AUTO_TEST_SUITE_END()
