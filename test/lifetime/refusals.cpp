// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The warnings about operations that a backend refuses.
#include "backend_failures.hpp"
#include "support/notes.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(refusals)

namespace {

const step out_of_memory = step::fail(errc::misconfigured_backend, "out of memory");

/// A locker whose observer records the warnings.
struct refusing_backend
{
    std::shared_ptr<notes> listener = std::make_shared<notes>();
    virtual_fixture env{backend_kind::scripted, {.observer = listener}};

    void acquire_refused(step how)
    {
        env.script->next(operation::create, std::move(how));
        BOOST_CHECK_THROW(static_cast<void>(env.acquire("k", {.retry = retry_policy::never()})), create_error);
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(each_cause_is_reported_once)
{
    refusing_backend backend;
    backend.acquire_refused(out_of_memory);
    backend.acquire_refused(out_of_memory);
    BOOST_TEST(backend.listener->warnings == words{"out of memory"}, boost::test_tools::per_element());
    backend.acquire_refused(step::fail(errc::access_denied, "no right to write"));
    backend.acquire_refused(out_of_memory);
    BOOST_TEST((backend.listener->warnings == words{"out of memory", "no right to write"}));
    // An observer that is attached later is notified, too.
    const auto late = std::make_shared<notes>();
    const colock::locker second(backend.env.backend(), {.observer = late});
    backend.acquire_refused(out_of_memory);
    BOOST_TEST(backend.listener->warnings.size() == 2U);
    BOOST_TEST((late->warnings == words{"out of memory"}));
    finish_cleanup(backend.env);
}

BOOST_AUTO_TEST_CASE(failure_that_is_no_refusal_causes_no_warning)
{
    refusing_backend backend;
    for (const auto code : {errc::unavailable, errc::outcome_unknown, errc::invalid_key, errc::unsupported})
        backend.acquire_refused(step::fail(code, "reason"));
    backend.acquire_refused(step::fail(errc::misconfigured_backend));
    BOOST_TEST(backend.listener->warnings.empty());
    finish_cleanup(backend.env);
}

BOOST_AUTO_TEST_CASE(cause_of_an_earlier_warning_is_not_repeated)
{
    refusing_backend backend;
    backend.env.script->contact().warn("a:1 cannot be used: wrong password");
    backend.env.script->contact().warn("a:1 cannot be used: wrong password");
    backend.acquire_refused(step::fail(errc::access_denied, "wrong password"));
    BOOST_TEST(backend.listener->warnings.size() == 1U);
    backend.acquire_refused(out_of_memory);
    // The failure of a quorum names the number of its nodes.
    backend.acquire_refused(step::fail(errc::misconfigured_backend, "2 of 3 masters failed: out of memory"));
    BOOST_TEST(backend.listener->warnings.size() == 2U);
    finish_cleanup(backend.env);
}

BOOST_AUTO_TEST_CASE(refusal_of_every_operation_is_reported)
{
    struct
    {
        operation what;
        std::function<void(virtual_fixture&, lock&)> call;
    } const rows[] = {
        {operation::extend, [](auto& env, auto& held) { env.run(held.extend(1min)); }},
        {operation::is_valid, [](auto& env, auto& held) { static_cast<void>(env.run(held.is_locked())); }},
        {operation::release, [](auto& env, auto& held) { env.run(held.release(on_failure::raise)); }},
        {operation::export_ticket, [](auto& env, auto& held) { static_cast<void>(env.run(held.detach())); }},
        {operation::inspect, [](auto& env, auto&) { static_cast<void>(env.run(env.locker->is_locked("k"))); }},
        {operation::break_key, [](auto& env, auto&) { static_cast<void>(env.run(env.locker->break_lock("k"))); }},
        {operation::list, [](auto& env, auto&) { static_cast<void>(env.run(env.locker->list())); }},
        {operation::purge, [](auto& env, auto&) { static_cast<void>(env.run(env.locker->purge())); }},
        {operation::group, [](auto& env, auto&) { static_cast<void>(env.run(env.locker->group("g").release())); }},
        {operation::create_all,
            [](auto& env, auto&) {
                static_cast<void>(env.run(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::never()})));
            }},
    };
    for (const auto& row : rows) {
        BOOST_TEST_CONTEXT(to_string(row.what))
        {
            refusing_backend backend;
            auto held = backend.env.acquire("held");
            backend.env.script->next(row.what, out_of_memory);
            BOOST_CHECK_THROW(row.call(backend.env, held), error);
            BOOST_TEST(backend.listener->warnings == words{"out of memory"}, boost::test_tools::per_element());
            held = {};
            finish_cleanup(backend.env);
        }
    }
}

BOOST_AUTO_TEST_CASE(refused_renewal_is_reported)
{
    refusing_backend backend;
    auto held = backend.env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    backend.env.script->next(operation::extend, out_of_memory);
    backend.env.advance_by_steps(11s, 1s);
    BOOST_TEST(backend.listener->risks == 1);
    BOOST_TEST((backend.listener->warnings == words{"out of memory"}));
    held = {};
    finish_cleanup(backend.env);
}

BOOST_AUTO_TEST_SUITE_END()
