// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/never_sent.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace colock::redis::detail {
namespace {

struct told_operation final : operation
{
    explicit told_operation(std::function<void(errc)> given) : told(std::move(given)) {}

    void write(boost::redis::request&) override {}
    void end(operation_ptr, delivery how, failure_ptr why) override
    {
        BOOST_TEST((how == delivery::unsent));
        told(why->code);
    }

    const std::function<void(errc)> told;
};

struct crowd final : remote::parts_owner
{
    [[nodiscard]] remote::connection_plan::demand demand() const noexcept override { return {}; }
    void opened() override {}
    void refuse(const failure_ptr&) override {}
    void arm_turn() override {}
    void finish_close() noexcept override { ++looked_at; }

    void give_up(std::size_t count, const std::function<void(errc)>& told)
    {
        for (std::size_t i = 0; i < count; ++i)
            static_cast<void>(unsent.add(std::make_unique<told_operation>(told)));
        dropped.add(unsent.take_all(), make_failure(errc::unavailable));
    }

    asio::io_context context;
    outbox unsent;
    never_sent dropped{context.get_executor(), *this, unsent};
    std::size_t looked_at = 0;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_never_sent)

BOOST_AUTO_TEST_CASE(some_are_told_at_once_and_the_rest_in_turns)
{
    constexpr std::size_t many = 4 * most_per_turn;
    const auto all = std::make_shared<crowd>();
    std::size_t ended = 0;
    all->give_up(many, [&](errc) { ++ended; });
    BOOST_TEST(ended == 0U);
    all->dropped.tell();
    BOOST_TEST((ended >= most_per_turn && ended < 2 * most_per_turn));
    // The next turn is posted already.
    const auto before = ended;
    all->dropped.tell();
    BOOST_TEST(ended == before);
    static_cast<void>(all->context.run_one());
    BOOST_TEST((ended > before && ended < many));
    static_cast<void>(all->context.run());
    BOOST_TEST(ended == many);
    BOOST_TEST(all->dropped.empty());
    // A close may have waited for them.
    BOOST_TEST(all->looked_at >= 3U);
}

BOOST_AUTO_TEST_CASE(waits_end_in_turns_as_well)
{
    const auto all = std::make_shared<crowd>();
    std::size_t ended = 0;
    remote::wait_sources::completions waits;
    for (std::size_t i = 0; i < most_per_turn + 1; ++i)
        waits.push_back([&](woken) { ++ended; });
    all->dropped.add(std::move(waits));
    all->dropped.tell();
    BOOST_TEST(ended == most_per_turn);
    BOOST_TEST(!all->dropped.empty());
    static_cast<void>(all->context.run());
    BOOST_TEST(ended == most_per_turn + 1);
}

BOOST_AUTO_TEST_CASE(whoever_is_told_may_give_up_more)
{
    const auto all = std::make_shared<crowd>();
    std::size_t ended = 0;
    bool inside = false;
    all->give_up(1, [&](errc) {
        inside = true;
        all->give_up(1, [&](errc) {
            BOOST_TEST(!inside);
            ++ended;
        });
        all->dropped.tell();
        inside = false;
    });
    all->dropped.tell();
    static_cast<void>(all->context.run());
    BOOST_TEST(ended == 1U);
    BOOST_TEST(all->dropped.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::redis::detail
