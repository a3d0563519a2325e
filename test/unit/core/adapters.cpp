// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/notes.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/locker.hpp>
#include <colock/observer.hpp>
#include <colock/spi/awaitable_adapter.hpp>

#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const error_code refused = make_error_code(boost::system::errc::connection_refused);

/// An adapter written with coroutines, which fail as requested.
class coroutine_adapter final : public awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;

    [[nodiscard]] adapter_traits traits() const noexcept override { return {.name = "coroutines"}; }

    std::function<void()> throw_failure;
    std::vector<std::string> asked;
    std::shared_ptr<session_lease> session;

protected:
    asio::awaitable<create_outcome> do_create(claim_ptr claim) override
    {
        note("create");
        claim->lease().tie(session);
        co_return create_outcome::granted(7);
    }
    asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee) override
    {
        note("release");
        co_return release_outcome{};
    }
    asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
    {
        note("extend");
        co_return extend_outcome{};
    }
    asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override
    {
        note("is_valid");
        co_return valid_outcome{true, nullptr};
    }

private:
    void note(const char* what)
    {
        asked.emplace_back(what);
        if (throw_failure)
            throw_failure();
    }
};

/// An adapter that records the guarantee of a release.
class plain_adapter final : public adapter
{
public:
    using adapter::adapter;
    using adapter::contact;

    [[nodiscard]] adapter_traits traits() const noexcept override { return {.name = "plain"}; }
    void start_create(claim_ptr, completion<create_outcome> done) override
    {
        asked.emplace_back("create");
        done(create_outcome::granted(1));
    }
    void start_release(claim_ptr, release_guarantee guarantee, completion<release_outcome> done) override
    {
        const bool settles = guarantee == release_guarantee::settled;
        asked.emplace_back(settles ? "settle" : "release");
        done({settles ? release_status::not_held : release_status::released, nullptr});
    }
    void start_extend(claim_ptr, std::chrono::milliseconds, completion<extend_outcome> done) override { done({}); }
    void start_is_valid(claim_ptr, completion<valid_outcome> done) override { done({}); }

    std::vector<std::string> asked;
};

} // namespace

BOOST_AUTO_TEST_SUITE(adapters)

BOOST_AUTO_TEST_CASE(an_exception_that_leaves_a_coroutine_is_a_failure)
{
    asio::io_context io;
    const auto backend = std::make_shared<coroutine_adapter>(io.get_executor());
    const driver env(io, backend);
    const auto claim = driver::exclusive("k");
    struct row
    {
        std::function<void()> thrown;
        errc code;
        error_code cause;
        std::string detail;
    };
    for (const auto& [thrown, code, cause, detail] : std::vector<row>{
             {[] { throw boost::system::system_error(errc::unavailable); }, errc::unavailable, {}, ""},
             {[] { throw boost::system::system_error(errc::access_denied); }, errc::access_denied, {}, ""},
             {[] { throw boost::system::system_error(refused); }, errc::outcome_unknown, refused, ""},
             {[] { throw std::runtime_error("out of luck"); }, errc::outcome_unknown, {}, "out of luck"},
             {[] { throw 1; }, errc::outcome_unknown, {}, ""},
         })
    {
        backend->throw_failure = thrown;
        const auto check = [&, expected = code, why = cause, words = detail](const failure_ptr& failed) {
            BOOST_TEST_REQUIRE((failed != nullptr));
            BOOST_TEST((failed->code == expected));
            BOOST_TEST((failed->cause == why));
            BOOST_TEST(failed->detail == words);
        };
        const auto created = env.create(claim);
        BOOST_TEST((created.status == create_status::failed));
        check(created.error);
        for (const auto& released : {env.release(claim), env.abandon(claim)}) {
            BOOST_TEST((released.status == release_status::failed));
            check(released.error);
        }
        const auto extended = env.extend(claim, 1s);
        BOOST_TEST((extended.status == extend_status::failed));
        check(extended.error);
        const auto valid = env.valid(claim);
        BOOST_TEST(!valid.valid);
        check(valid.error);
    }
}

BOOST_AUTO_TEST_CASE(coroutine_receives_each_release)
{
    asio::io_context io;
    const auto backend = std::make_shared<coroutine_adapter>(io.get_executor());
    const driver env(io, backend);
    const auto claim = driver::exclusive("k");
    BOOST_TEST(env.create(claim).fence == 7U);
    BOOST_TEST((env.extend(claim, 1s).status == extend_status::extended));
    BOOST_TEST(env.valid(claim).valid);
    BOOST_TEST((env.abandon(claim).status == release_status::released));
    BOOST_TEST((backend->asked == std::vector<std::string>{"create", "extend", "is_valid", "release"}));
}

BOOST_AUTO_TEST_CASE(default_hand_over_settles_a_claim_in_doubt)
{
    for (const bool doubtful : {false, true}) {
        asio::io_context io;
        const auto backend = std::make_shared<plain_adapter>(io.get_executor());
        const driver env(io, backend);
        const auto held = driver::exclusive("k"), next = driver::exclusive("k");
        if (doubtful)
            held->mark_in_doubt();
        const auto outcome = env.hand_over(held, next);
        BOOST_TEST((outcome.released.status == (doubtful ? release_status::not_held : release_status::released)));
        BOOST_TEST((outcome.created.status == create_status::granted));
        BOOST_TEST((backend->asked == std::vector<std::string>{doubtful ? "settle" : "release", "create"}));
    }
}

BOOST_AUTO_TEST_CASE(observer_of_several_lockers_gets_each_event_once)
{
    asio::io_context io;
    const auto backend = std::make_shared<plain_adapter>(io.get_executor());
    const auto twice = std::make_shared<notes>();
    const auto once = std::make_shared<notes>();
    backend->attach(twice);
    backend->attach(twice);
    backend->attach(once);
    backend->contact().set_up();
    backend->contact().set_down(refused);
    backend->contact().set_up();
    BOOST_TEST(twice->reconnections == 1);
    BOOST_TEST(once->reconnections == 1);
    BOOST_TEST(backend->reconnects() == 1U);
}

BOOST_AUTO_TEST_CASE(each_observer_is_notified_once_that_the_backend_is_ready)
{
    asio::io_context io;
    const auto backend = std::make_shared<plain_adapter>(io.get_executor());
    const auto early = std::make_shared<notes>();
    const auto late = std::make_shared<notes>();
    const auto latest = std::make_shared<notes>();
    backend->attach(early);
    BOOST_TEST(early->readies == 0);
    backend->contact().set_up();
    BOOST_TEST(early->readies == 1);
    backend->attach(late);
    backend->attach(late);
    BOOST_TEST(late->readies == 1);

    backend->contact().set_down(refused);
    backend->attach(latest);
    BOOST_TEST(latest->readies == 0);
    backend->contact().set_up();
    BOOST_TEST(latest->readies == 1);
    BOOST_TEST(latest->reconnections == 0);
    BOOST_TEST(early->readies == 1);
    BOOST_TEST(early->reconnections == 1);

    backend->contact().set_down(refused);
    backend->contact().set_up();
    BOOST_TEST(latest->readies == 1);
    BOOST_TEST(latest->reconnections == 1);
}

BOOST_AUTO_TEST_CASE(change_of_contact_becomes_the_event_that_follows_from_the_state)
{
    struct log final : observer
    {
        void ready(std::string_view) noexcept override { events += "ready "; }
        void unreachable(std::string_view, const error_code&, std::string_view, std::string_view) noexcept override
        {
            events += "unreachable ";
        }
        void suspended(std::string_view, const error_code&) noexcept override { events += "suspended "; }
        void reconnected(std::string_view) noexcept override { events += "reconnected "; }
        std::string events;
    };
    const auto fail = [](contact& of) {
        of.set_down(make_failure(errc::unavailable, "nobody listens", refused), "here:1");
    };
    const auto lose = [](contact& of) { of.set_down(refused); };
    const auto up = [](contact& of) { of.set_up(); };
    const auto begin = [](contact& of) { of.set_connecting("here:1"); };
    const auto idle = [](contact& of) { of.set_idle(); };
    struct row
    {
        std::vector<std::function<void(contact&)>> changes;
        std::string expected;
        std::uint64_t reconnects;
        bool has_failed;
    };
    for (const auto& [changes, expected, reconnects, has_failed] : std::vector<row>{
             {{begin}, "", 0, true},
             {{begin, idle}, "", 0, false},
             {{begin, up}, "ready ", 0, false},
             {{begin, fail, fail, begin, up}, "unreachable ready ", 0, false},
             {{up, lose, fail, up}, "ready suspended unreachable reconnected ", 1, false},
             {{up, fail, fail, up}, "ready suspended unreachable reconnected ", 1, false},
             {{up, lose, idle}, "ready suspended ", 0, true},
             {{up, idle, begin, up}, "ready ", 0, false},
             {{up, idle, begin, fail, up}, "ready unreachable reconnected ", 1, false},
             {{up, lose, begin, up, lose, up}, "ready suspended reconnected suspended reconnected ", 2, false},
             // A mistake of an adapter, which the contract suite detects.
             {{up, up}, "ready reconnected ", 1, false},
         })
    {
        asio::io_context io;
        const auto backend = std::make_shared<plain_adapter>(io.get_executor());
        const auto observed = std::make_shared<log>();
        backend->attach(observed);
        for (const auto& change : changes)
            change(backend->contact());
        BOOST_TEST(observed->events == expected);
        BOOST_TEST(backend->reconnects() == reconnects);
        BOOST_TEST((backend->connection_failure() != nullptr) == has_failed);
    }
}

BOOST_AUTO_TEST_CASE(session_is_unused_when_its_last_claim_has_ended)
{
    asio::io_context io;
    const auto backend = std::make_shared<coroutine_adapter>(io.get_executor());
    int times = 0;
    backend->session = std::make_shared<session_lease>(lease_clock::now() + 1h, [&times] { ++times; });
    const locker locks(backend);
    for (const int round : {0, 1}) {
        auto first = run_coro(io, locks.acquire("a"));
        auto second = run_coro(io, locks.acquire("b"));
        run_coro(io, first.release());
        first = {};
        run_ready(io);
        BOOST_TEST(backend->session->is_used());
        BOOST_TEST(times == round);
        run_coro(io, second.release());
        second = {};
        run_ready(io);
        BOOST_TEST(!backend->session->is_used());
        BOOST_TEST(times == round + 1);
    }
}

BOOST_AUTO_TEST_CASE(unsupported_operation_is_refused)
{
    asio::io_context io;
    const auto backend = std::make_shared<plain_adapter>(io.get_executor());
    const auto can = backend->traits().capabilities;
    BOOST_TEST(!can.create_all);
    BOOST_TEST(!can.groups);
    BOOST_TEST(!can.tickets);
    const auto claim = driver::exclusive("k");
    const auto refused = [](const failure_ptr& why) { return why && why->code == errc::unsupported; };
    int ended = 0;
    backend->start_create_all({claim}, [&](const create_all_outcome& outcome) {
        BOOST_TEST((outcome.status == create_status::failed));
        BOOST_TEST(refused(outcome.refusal.error));
        ++ended;
    });
    backend->start_group("g", group_action::release, 0ms, [&](const group_outcome& outcome) {
        BOOST_TEST(refused(outcome.error));
        ++ended;
    });
    backend->start_export(claim, [&](const export_outcome& outcome) {
        BOOST_TEST(refused(outcome.error));
        ++ended;
    });
    backend->start_adopt("t", claim, [&](const create_outcome& outcome) {
        BOOST_TEST((outcome.status == create_status::failed));
        BOOST_TEST(refused(outcome.error));
        ++ended;
    });
    BOOST_TEST(ended == 4);
    BOOST_TEST(backend->asked.empty());
}

BOOST_AUTO_TEST_CASE(failure_without_an_error_is_an_unknown_outcome)
{
    struct silent_adapter final : awaitable_adapter
    {
        using awaitable_adapter::awaitable_adapter;
        [[nodiscard]] adapter_traits traits() const noexcept override { return {.name = "silent_adapter"}; }
        asio::awaitable<create_outcome> do_create(claim_ptr claim) override
        {
            if (claim->key() == "k")
                co_return create_outcome::failed(nullptr);
            co_return create_outcome::granted(1);
        }
        asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee) override
        {
            co_return release_outcome{.status = release_status::failed};
        }
        asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
        {
            co_return extend_outcome{.status = extend_status::failed};
        }
        asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{}; }
    };
    asio::io_context io;
    locker by(std::make_shared<silent_adapter>(io.get_executor()));
    COLOCK_THROWS(create_error, errc::outcome_unknown, run_coro(io, by.acquire("k", {.retry = retry_policy::never()})));
    auto held = run_coro(io, by.acquire("l"));
    COLOCK_THROWS(extend_error, errc::outcome_unknown, run_coro(io, held.extend(1h)));
    COLOCK_THROWS(release_error, errc::outcome_unknown, run_coro(io, held.release(on_failure::raise)));
}

BOOST_AUTO_TEST_SUITE_END()
