// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "scenarios.hpp"
#include "usual_options.hpp"

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

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

void rival_gives_up(stage& on)
{
    auto held = run_coro(on.on.io(), on.rival->acquire("k", {.ttl = 10h}));
    on.ticket = run_coro(on.on.io(), held.detach());
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
    const auto all_shared_verb = [](stage& s) { s.spawn(s.on.locker->acquire_all({"a", "k", "z"}, shared)); };
    const auto all_shared_front = [](stage& s) {
        s.on.locker->async_acquire_all(std::vector<std::string>{"a", "k", "z"}, shared, s.handler());
    };
    const auto with_verb = [](auto body) {
        return [body](stage& s) { s.spawn(s.on.locker->with_lock("k", {.ttl = 10h}, body)); };
    };
    const auto with_front = [](auto body) {
        return [body](stage& s) { s.on.locker->async_with_lock("k", {.ttl = 10h}, body, s.handler()); };
    };
    const auto skip_minutes = [](stage& s) { s.on.clock.advance(s.on.io(), 2min); };
    const auto skip_seconds = [](stage& s) { s.on.clock.advance(s.on.io(), 5s); };
    // What nobody adopts is let go of.
    const auto detach_verb = [](stage& s) {
        s.spawn([](stage& on) -> asio::awaitable<void> { on.ticket = co_await on.subject.detach(); }(s));
    };
    const auto detach_front = [](stage& s) {
        s.subject.async_detach(asio::bind_cancellation_slot(s.cancel.slot(), [&s](error_code code, std::string ticket) {
            ++s.completions;
            s.result = code;
            s.ticket = std::move(ticket);
        }));
    };
    const auto adopt_verb = [](stage& s) { s.spawn(s.on.locker->adopt(s.ticket)); };
    const auto adopt_front = [](stage& s) { s.on.locker->async_adopt(s.ticket, s.handler()); };
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
        {"acquire_all, two held by another process",
            [](stage& s) {
                rival_holds(s);
                s.others.push_back(run_coro(s.on.io(), s.rival->acquire("z")));
            },
            all_verb, all_front, {[](stage& s) { s.others.erase(s.others.begin()); }, others_release}},
        {"acquire_all, a lease lost on the way", rival_holds, all_verb, all_front,
            {[](stage& s) { static_cast<void>(run_coro(s.on.io(), s.rival->break_lock("a"))); }, others_release,
                skip_seconds}},
        {"acquire_all, one held by the same locker", mate_holds, all_verb, all_front, {others_release}},
        {"acquire_all, behind local waiters", local_queue, all_verb, all_front, {others_release}},
        {"acquire_all, one by one, free", nothing, all_shared_verb, all_shared_front, {}},
        {"acquire_all, one by one, one held by another process", rival_holds, all_shared_verb, all_shared_front,
            {others_release}},
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
        {"detach", hold_subject, detach_verb, detach_front, {}},
        {"detach before a local waiter",
            [](stage& s) {
                hold_subject(s);
                s.join_queue();
                s.on.ready();
            },
            detach_verb, detach_front, {[](stage& s) { s.release_in_background(); }}},
        {"adopt", rival_gives_up, adopt_verb, adopt_front, {}},
        {"adopt before others that wait",
            [](stage& s) {
                rival_gives_up(s);
                s.join_queue();
                s.on.ready();
            },
            adopt_verb, adopt_front, {}},
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

} // namespace

const std::vector<scenario>& scenarios()
{
    static const auto all = make_scenarios();
    return all;
}

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

} // namespace colock::testing
