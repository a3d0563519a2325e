// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// An adapter that has no memory to send the next operation of one kind.
class exhausted_adapter : public instrumented_adapter
{
public:
    using instrumented_adapter::instrumented_adapter;

    /// The kind of the operation that fails once.
    std::optional<operation> failing;
    /// Whether a hand-over is a release and then a create, as with an adapter that does not override it.
    bool has_default_hand_over = false;

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        fail_once(operation::create);
        instrumented_adapter::start_create(std::move(claim), std::move(done));
    }
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        fail_once(operation::release);
        instrumented_adapter::start_release(std::move(claim), guarantee, std::move(done));
    }
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override
    {
        fail_once(operation::extend);
        instrumented_adapter::start_extend(std::move(claim), ttl, std::move(done));
    }
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        fail_once(operation::is_valid);
        instrumented_adapter::start_is_valid(std::move(claim), std::move(done));
    }
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        fail_once(operation::hand_over);
        if (has_default_hand_over)
            return adapter::start_hand_over( // NOLINT(bugprone-parent-virtual-call)
                std::move(held), std::move(next), std::move(done));
        instrumented_adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
    }
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override
    {
        fail_once(operation::create_all);
        instrumented_adapter::start_create_all(std::move(claims), std::move(done));
    }

private:
    void fail_once(operation what)
    {
        if (failing != what)
            return;
        failing.reset();
        throw std::bad_alloc();
    }
};

struct exhausted_fixture : virtual_fixture
{
    std::shared_ptr<exhausted_adapter> exhausted =
        std::make_shared<exhausted_adapter>(memory, context->get_executor(), timing::posted);

    exhausted_fixture() : virtual_fixture(backend_kind::scripted)
    {
        script = exhausted;
        locker.emplace(script);
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(requests_without_memory)

BOOST_FIXTURE_TEST_CASE(acquire_without_memory_for_its_request_is_tried_again, exhausted_fixture)
{
    exhausted->failing = operation::create;
    auto acquiring = start(locker->acquire("k"));
    ready();
    BOOST_TEST(!exhausted->failing.has_value());
    advance(5s);
    auto held = acquiring.get(io());
    exhausted->failing = operation::create_all;
    auto group = start(locker->acquire_all({"a", "b"}));
    advance(5s);
    run(group.get(io()).release());
    run(held.release(on_failure::raise));
    check_clean();
}

BOOST_FIXTURE_TEST_CASE(try_without_memory_for_its_request_is_unavailable, exhausted_fixture)
{
    exhausted->failing = operation::create;
    BOOST_CHECK_EXCEPTION(run(locker->try_acquire("k")), create_error, [](const create_error& failed) {
        return failed.code() == errc::unavailable && failed.cause() == boost::system::errc::not_enough_memory;
    });
    check_clean();
}

BOOST_FIXTURE_TEST_CASE(extend_without_memory_for_its_request_keeps_the_lock, exhausted_fixture)
{
    auto held = acquire("k", {.ttl = 10s});
    exhausted->failing = operation::extend;
    BOOST_CHECK_EXCEPTION(run(held.extend(20s)), extend_error, [](const extend_error& failed) {
        return failed.code() == errc::unavailable && failed.cause() == boost::system::errc::not_enough_memory;
    });
    exhausted->failing = operation::is_valid;
    BOOST_CHECK_THROW(run(held.is_locked()), error);
    BOOST_TEST(held.held());
    run(held.extend(20s));
    run(held.release(on_failure::raise));
    check_clean();
}

BOOST_FIXTURE_TEST_CASE(release_without_memory_for_its_request_is_settled, exhausted_fixture)
{
    auto held = acquire("k", {.ttl = 1h});
    exhausted->failing = operation::release;
    held = {};
    BOOST_TEST(!exhausted->failing.has_value());
    wind_down();
    BOOST_TEST(locker->stats().settled == 1U);
    BOOST_TEST(stored().empty());
    check_clean();
}

BOOST_FIXTURE_TEST_CASE(hand_over_without_memory_for_its_create_grants_the_waiter_later, exhausted_fixture)
{
    exhausted->has_default_hand_over = true;
    auto held = acquire("k", {.ttl = 1h});
    auto waiting = start(locker->acquire("k", {.ttl = 1h}));
    ready();
    exhausted->failing = operation::create;
    held = {};
    ready();
    BOOST_TEST(!exhausted->failing.has_value());
    advance(10s);
    run(waiting.get(io()).release(on_failure::raise));
    wind_down_and_check();
}

BOOST_FIXTURE_TEST_CASE(hand_over_without_memory_for_its_request_grants_the_waiter_later, exhausted_fixture)
{
    auto held = acquire("k", {.ttl = 1h});
    auto waiting = start(locker->acquire("k", {.ttl = 1h}));
    ready();
    exhausted->failing = operation::hand_over;
    held = {};
    BOOST_TEST(!exhausted->failing.has_value());
    advance(10s);
    run(waiting.get(io()).release(on_failure::raise));
    wind_down();
    BOOST_TEST(stored().empty());
    check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
