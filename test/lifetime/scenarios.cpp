// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "scenarios.hpp"
#include "usual_options.hpp"

#include <colock/election.hpp>

#include <stdexcept>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

void nothing(scenario_run&) {}

void other_locker_holds(scenario_run& run)
{
    run.others.push_back(run_coro(run.env.io(), run.other_locker->acquire("k")));
}

void same_locker_holds(scenario_run& run)
{
    run.others.push_back(run.env.acquire("k"));
}

void others_release(scenario_run& run)
{
    run.others.clear();
}

void other_locker_detaches(scenario_run& run)
{
    auto held = run_coro(run.env.io(), run.other_locker->acquire("k", {.ttl = 10h}));
    run.ticket = run_coro(run.env.io(), held.detach());
}

void hold_subject(scenario_run& run)
{
    run.subject = run.env.acquire("k", {.ttl = 10h});
}

void extend_subject(scenario_run& run)
{
    hold_subject(run);
    run.subject.async_extend(5h, [](error_code) {});
}

asio::awaitable<int> busy_body(lock&)
{
    for (int n = 0; n < 3; ++n)
        co_await asio::post(asio::deferred);
    co_return 1;
}

asio::awaitable<int> busy_group_body(lock_group&)
{
    for (int n = 0; n < 3; ++n)
        co_await asio::post(asio::deferred);
    co_return 1;
}

asio::awaitable<void> sleeping_group_body(lock_group&)
{
    lease_timer timer(co_await asio::this_coro::executor, 1min);
    co_await timer.async_wait(asio::deferred);
}

asio::awaitable<void> sleeping_body(lock&)
{
    lease_timer timer(co_await asio::this_coro::executor, 1min);
    co_await timer.async_wait(asio::deferred);
}

asio::awaitable<void> throwing_body()
{
    co_await asio::post(asio::deferred);
    throw std::runtime_error("the work failed");
}

/// Ends an election, which would otherwise begin the next term.
void shut_down(scenario_run& run)
{
    asio::co_spawn(
        run.env.io(),
        [](locker ended) -> asio::awaitable<void> { static_cast<void>(co_await ended.shutdown(1min)); }(
                             *run.env.locker),
        asio::detached);
}

asio::awaitable<void> releasing_body(lock& held)
{
    co_await held.release();
    co_await asio::post(asio::deferred);
}

template <class Run>
std::vector<scenario_of<Run>> make_scenarios()
{
    const auto acquire_awaitable = [](Run& s) { s.spawn(s.env.locker->acquire("k")); };
    const auto acquire_async = [](Run& s) { s.env.locker->async_acquire("k", s.handler()); };
    const auto shared_awaitable = [](Run& s) { s.spawn(s.env.locker->acquire("k", shared)); };
    const auto shared_async = [](Run& s) { s.env.locker->async_acquire("k", shared, s.handler()); };
    const auto try_awaitable = [](Run& s) { s.spawn(s.env.locker->try_acquire("k")); };
    const auto try_async = [](Run& s) { s.env.locker->async_try_acquire("k", s.handler()); };
    const auto limited_awaitable = [](Run& s) { s.spawn(s.env.locker->try_acquire("k", 3s)); };
    const auto limited_async = [](Run& s) { s.env.locker->async_try_acquire("k", 3s, s.handler()); };
    const auto limited_all_awaitable = [](Run& s) { s.spawn(s.env.locker->try_acquire_all({"a", "k", "z"}, 3s)); };
    const auto limited_all_async = [](Run& s) {
        s.env.locker->async_try_acquire_all(std::vector<std::string>{"a", "k", "z"}, 3s, s.handler());
    };
    const auto limited_with_awaitable = [](Run& s) {
        s.spawn(s.env.locker->try_with_lock("k", 3s, {.ttl = 10h}, busy_body));
    };
    const auto limited_with_async = [](Run& s) {
        s.env.locker->async_try_with_lock("k", 3s, {.ttl = 10h}, busy_body, s.handler());
    };
    const auto all_awaitable = [](Run& s) { s.spawn(s.env.locker->acquire_all({"a", "k", "z"})); };
    const auto all_async = [](Run& s) {
        s.env.locker->async_acquire_all(std::vector<std::string>{"a", "k", "z"}, s.handler());
    };
    const auto all_shared_awaitable = [](Run& s) { s.spawn(s.env.locker->acquire_all({"a", "k", "z"}, shared)); };
    const auto all_shared_async = [](Run& s) {
        s.env.locker->async_acquire_all(std::vector<std::string>{"a", "k", "z"}, shared, s.handler());
    };
    const auto with_awaitable = [](auto body) {
        return [body](Run& s) { s.spawn(s.env.locker->with_lock("k", {.ttl = 10h}, body)); };
    };
    const auto with_async = [](auto body) {
        return [body](Run& s) { s.env.locker->async_with_lock("k", {.ttl = 10h}, body, s.handler()); };
    };
    const auto with_several_awaitable = [](auto body) {
        return [body](Run& s) { s.spawn(s.env.locker->with_lock({"a", "k", "z"}, {.ttl = 10h}, body)); };
    };
    const auto with_several_async = [](auto body) {
        return [body](Run& s) { s.env.locker->async_with_lock({"a", "k", "z"}, {.ttl = 10h}, body, s.handler()); };
    };
    const auto candidate = [](Run& s) { return election(*s.env.locker, "k", {.ttl = 10h}); };
    const auto lead_awaitable = [candidate](auto body) {
        return [candidate, body](Run& s) { s.spawn(candidate(s).lead(body)); };
    };
    const auto lead_async = [candidate](auto body) {
        return [candidate, body](Run& s) { candidate(s).async_lead(body, s.handler()); };
    };
    const auto campaign_awaitable = [candidate](Run& s) { s.spawn(candidate(s).campaign()); };
    const auto campaign_async = [candidate](Run& s) { candidate(s).async_campaign(s.handler()); };
    const auto skip_minutes = [](Run& s) { jump(s.env.io(), 2min); };
    const auto skip_seconds = [](Run& s) { jump(s.env.io(), 5s); };
    const auto detach_awaitable = [](Run& s) {
        s.spawn([](scenario_run& run) -> asio::awaitable<void> { run.ticket = co_await run.subject.detach(); }(s));
    };
    const auto detach_async = [](Run& s) {
        s.subject.async_detach(s.bound([&s, live = s.live_handlers](error_code code, std::string ticket) {
            s.complete(code);
            s.ticket = std::move(ticket);
        }));
    };
    const auto adopt_awaitable = [](Run& s) { s.spawn(s.env.locker->adopt(s.ticket)); };
    const auto adopt_async = [](Run& s) { s.env.locker->async_adopt(s.ticket, s.handler()); };
    const auto local_queue = [](Run& s) {
        same_locker_holds(s);
        s.join_queue();
        s.join_queue(shared);
        s.env.ready();
    };
    const auto hold_group = [](Run& s) { s.group = s.env.run(s.env.locker->acquire_all({"a", "k", "z"})); };
    const auto busy_locker = [](Run& s) {
        hold_subject(s);
        s.join_queue();
        s.others.push_back(run_coro(s.env.io(), s.other_locker->acquire("r")));
        asio::co_spawn(
            s.env.io(),
            [](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire("r")); }(*s.env.locker),
            asio::detached);
        s.env.ready();
    };
    return {
        {"acquire, free", nothing, acquire_awaitable, acquire_async, {}},
        {"acquire, held by another process", other_locker_holds, acquire_awaitable, acquire_async, {others_release}},
        {"acquire, held by the same locker", same_locker_holds, acquire_awaitable, acquire_async, {others_release}},
        {"acquire, behind local waiters", local_queue, acquire_awaitable, acquire_async, {others_release}},
        {"acquire, behind local waiters of a lock held elsewhere",
            [](Run& s) {
                other_locker_holds(s);
                s.join_queue();
                s.join_queue();
                s.env.ready();
            },
            acquire_awaitable, acquire_async, {others_release}},
        {"acquire, shared, free", nothing, shared_awaitable, shared_async, {}},
        {"acquire, shared, behind others",
            [](Run& s) {
                other_locker_holds(s);
                s.join_queue(shared);
                s.env.ready();
            },
            shared_awaitable, shared_async, {others_release}},
        {"try_acquire, free", nothing, try_awaitable, try_async, {}},
        {"try_acquire, busy", other_locker_holds, try_awaitable, try_async, {}},
        {"try_acquire within 3 s, held by another process", other_locker_holds, limited_awaitable, limited_async,
            {others_release}},
        {"try_acquire within 3 s, behind local waiters", local_queue, limited_awaitable, limited_async,
            {others_release}},
        {"try_acquire_all within 3 s, one held by another process", other_locker_holds, limited_all_awaitable,
            limited_all_async, {others_release}},
        {"try_acquire_all within 3 s, one busy", other_locker_holds, limited_all_awaitable, limited_all_async,
            {skip_seconds}},
        {"try_with_lock within 3 s, held by another process", other_locker_holds, limited_with_awaitable,
            limited_with_async, {others_release}},
        {"try_with_lock within 3 s, busy", other_locker_holds, limited_with_awaitable, limited_with_async,
            {skip_seconds}},
        {"with_lock, free", nothing, with_awaitable(busy_body), with_async(busy_body), {}},
        {"with_lock, held by another process", other_locker_holds, with_awaitable(busy_body), with_async(busy_body),
            {others_release}},
        {"with_lock, held by the same locker", same_locker_holds, with_awaitable(busy_body), with_async(busy_body),
            {others_release}},
        {"with_lock, sleeping body", nothing, with_awaitable(sleeping_body), with_async(sleeping_body), {skip_minutes}},
        {"with_lock, releasing body", nothing, with_awaitable(releasing_body), with_async(releasing_body), {}},
        {"acquire_all, free", nothing, all_awaitable, all_async, {}},
        {"acquire_all, one held by another process", other_locker_holds, all_awaitable, all_async, {others_release}},
        {"acquire_all, two held by another process",
            [](Run& s) {
                other_locker_holds(s);
                s.others.push_back(run_coro(s.env.io(), s.other_locker->acquire("z")));
            },
            all_awaitable, all_async, {[](Run& s) { s.others.erase(s.others.begin()); }, others_release}},
        {"acquire_all, a lease lost while it waits", other_locker_holds, all_awaitable, all_async,
            {[](Run& s) { static_cast<void>(run_coro(s.env.io(), s.other_locker->break_lock("a"))); }, others_release,
                skip_seconds}},
        {"acquire_all, one held by the same locker", same_locker_holds, all_awaitable, all_async, {others_release}},
        {"acquire_all, behind local waiters", local_queue, all_awaitable, all_async, {others_release}},
        {"acquire_all, one by one, free", nothing, all_shared_awaitable, all_shared_async, {}},
        {"acquire_all, one by one, one held by another process", other_locker_holds, all_shared_awaitable,
            all_shared_async, {others_release}},
        {"group.acquire",
            [](Run& s) {
                other_locker_holds(s);
                s.group = s.env.run(s.env.locker->acquire_all({"a", "b"}));
            },
            [](Run& s) { s.spawn(s.group.acquire("k")); }, [](Run& s) { s.group.async_acquire("k", s.handler()); },
            {others_release}},
        {"group.extend", hold_group, [](Run& s) { s.spawn(s.group.extend(20s)); },
            [](Run& s) { s.group.async_extend(20s, s.handler()); }, {}},
        {"group.release", hold_group, [](Run& s) { s.spawn(s.group.release()); },
            [](Run& s) { s.group.async_release(s.handler()); }, {}},
        {"group.lost", hold_group, [](Run& s) { s.spawn(s.group.lost()); },
            [](Run& s) { s.group.async_lost(s.handler()); },
            {[](Run& s) { static_cast<void>(run_coro(s.env.io(), s.other_locker->break_lock("k"))); },
                [](Run& s) { jump(s.env.io(), 20h); }}},
        {"with_lock of several keys", nothing, with_several_awaitable(busy_group_body),
            with_several_async(busy_group_body), {}},
        {"with_lock of several keys, one held by another process", other_locker_holds,
            with_several_awaitable(busy_group_body), with_several_async(busy_group_body), {others_release}},
        {"with_lock of several keys, sleeping body", nothing, with_several_awaitable(sleeping_group_body),
            with_several_async(sleeping_group_body), {skip_minutes}},
        {"campaign, free", nothing, campaign_awaitable, campaign_async, {}},
        {"campaign, held by another process", other_locker_holds, campaign_awaitable, campaign_async, {others_release}},
        {"lead, free", nothing, lead_awaitable(sleeping_body), lead_async(sleeping_body), {shut_down}},
        {"lead, held by another process", other_locker_holds, lead_awaitable(sleeping_body), lead_async(sleeping_body),
            {others_release, shut_down}},
        {"lead, two terms", nothing, lead_awaitable(sleeping_body), lead_async(sleeping_body),
            {skip_minutes, shut_down}},
        {"lead, throwing body", nothing, lead_awaitable(throwing_body), lead_async(throwing_body),
            {skip_seconds, shut_down}},
        {"leader", hold_subject, [candidate](Run& s) { s.spawn(candidate(s).leader()); },
            [candidate](Run& s) { candidate(s).async_leader(s.handler()); }, {}},
        {"next_leader", nothing, [candidate](Run& s) { s.spawn(candidate(s).next_leader(0)); },
            [candidate](Run& s) { candidate(s).async_next_leader(0, s.handler()); },
            {other_locker_holds, skip_seconds}},
        {"extend", hold_subject, [](Run& s) { s.spawn(s.subject.extend(20s)); },
            [](Run& s) { s.subject.async_extend(20s, s.handler()); }, {}},
        {"extend behind another one", extend_subject, [](Run& s) { s.spawn(s.subject.extend(20s)); },
            [](Run& s) { s.subject.async_extend(20s, s.handler()); }, {}},
        {"lock.is_locked behind an extend", extend_subject, [](Run& s) { s.spawn(s.subject.is_locked()); },
            [](Run& s) { s.subject.async_is_locked(s.handler()); }, {}},
        {"detach behind an extend", extend_subject, detach_awaitable, detach_async, {}},
        {"release", hold_subject, [](Run& s) { s.spawn(s.subject.release()); },
            [](Run& s) { s.subject.async_release(s.handler()); }, {}},
        {"release to a local waiter",
            [](Run& s) {
                hold_subject(s);
                s.join_queue();
                s.env.ready();
            },
            [](Run& s) { s.spawn(s.subject.release(on_failure::raise)); },
            [](Run& s) { s.subject.async_release(on_failure::raise, s.handler()); }, {}},
        {"detach", hold_subject, detach_awaitable, detach_async, {}},
        {"detach before a local waiter",
            [](Run& s) {
                hold_subject(s);
                s.join_queue();
                s.env.ready();
            },
            detach_awaitable, detach_async, {[](Run& s) { s.release_in_background(); }}},
        {"adopt", other_locker_detaches, adopt_awaitable, adopt_async, {}},
        {"adopt, other waiters",
            [](Run& s) {
                other_locker_detaches(s);
                s.join_queue();
                s.env.ready();
            },
            adopt_awaitable, adopt_async, {}},
        {"lost", hold_subject, [](Run& s) { s.spawn(s.subject.lost()); },
            [](Run& s) { s.subject.async_lost(s.handler()); },
            {[](Run& s) { static_cast<void>(run_coro(s.env.io(), s.other_locker->break_lock("k"))); },
                [](Run& s) { jump(s.env.io(), 20h); }}},
        {"lock.is_locked", hold_subject, [](Run& s) { s.spawn(s.subject.is_locked()); },
            [](Run& s) { s.subject.async_is_locked(s.handler()); }, {}},
        {"is_locked", hold_subject, [](Run& s) { s.spawn(s.env.locker->is_locked("k")); },
            [](Run& s) { s.env.locker->async_is_locked("k", s.handler()); }, {}},
        {"list", hold_subject, [](Run& s) { s.spawn(s.env.locker->list()); },
            [](Run& s) { s.env.locker->async_list({}, s.handler()); }, {}},
        {"purge", hold_subject, [](Run& s) { s.spawn(s.env.locker->purge()); },
            [](Run& s) { s.env.locker->async_purge(0, s.handler()); }, {}},
        {"break_lock", hold_subject, [](Run& s) { s.spawn(s.env.locker->break_lock("k")); },
            [](Run& s) { s.env.locker->async_break_lock("k", s.handler()); }, {}},
        {"shutdown", busy_locker, [](Run& s) { s.spawn(s.env.locker->shutdown(1min)); },
            [](Run& s) { s.env.locker->async_shutdown(1min, s.handler()); }, {}},
        {"shutdown with a body that runs",
            [](Run& s) {
                s.env.locker->async_with_lock("k", {.ttl = 10h}, sleeping_body, [](std::exception_ptr) {});
                s.env.ready();
            },
            [](Run& s) { s.spawn(s.env.locker->shutdown(1min)); },
            [](Run& s) { s.env.locker->async_shutdown(1min, s.handler()); }, {}},
    };
}

} // namespace

template <class Run>
const std::vector<scenario_of<Run>>& scenarios()
{
    static const auto all = make_scenarios<Run>();
    return all;
}

template const std::vector<scenario_of<scenario_run>>& scenarios<scenario_run>();
template const std::vector<scenario_of<foreign_run>>& scenarios<foreign_run>();

} // namespace colock::testing
