// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "driver.hpp"

#include "print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace colock::testing {

namespace {

template <class Outcome>
std::vector<lock_status> statuses(Outcome outcome)
{
    if (outcome.error)
        throw std::runtime_error(error_code(outcome.error->code).message() + ": " + outcome.error->detail);
    return std::move(outcome.locks);
}

asio::awaitable<std::uint64_t> acquire(std::shared_ptr<adapter> backend, claim_ptr claim)
{
    for (;;) {
        const auto outcome = co_await backend->create(sent_now(claim));
        if (outcome.status == create_status::granted)
            co_return outcome.fence;
        if (outcome.status == create_status::failed)
            throw std::runtime_error(error_code(outcome.error->code).message() + ": " + outcome.error->detail);
        co_await backend->wait(claim, lease_clock::time_point::max());
    }
}

} // namespace

// A failed check is reported with the line in the helper function. The context adds the line of the caller.
#define COLOCK_CALLED_FROM(at) BOOST_TEST_CONTEXT("called from " << (at).file_name() << ":" << (at).line())

std::vector<lock_status> stored_in(adapter& store)
{
    std::vector<lock_status> all;
    std::string cursor;
    do {
        store.start_listing({.cursor = cursor}, [&](list_outcome page) {
            std::ranges::move(page.locks, std::back_inserter(all));
            cursor = std::move(page.next);
        });
    } while (!cursor.empty());
    return all;
}

driver::driver(asio::io_context& context, std::shared_ptr<adapter> backend) : io_(context), backend_(std::move(backend))
{
}

plain_claim_ptr driver::exclusive(std::string key, std::chrono::milliseconds ttl)
{
    return new plain_claim({.key = std::move(key), .ttl = ttl});
}

plain_claim_ptr driver::shared(std::string key, std::size_t max_holders, std::chrono::milliseconds ttl)
{
    return new plain_claim({.key = std::move(key), .mode = lock_mode::shared, .max_holders = max_holders, .ttl = ttl});
}

plain_claim_ptr driver::one_attempt(std::string key, lock_mode mode)
{
    return new plain_claim({.key = std::move(key), .mode = mode, .ttl = long_ttl, .keeps_place = false});
}

create_outcome driver::create(const claim_ptr& claim, where at) const
{
    return run_coro(io_, backend_->create(sent_now(claim)), at);
}

create_all_outcome driver::create_all(const std::vector<plain_claim_ptr>& claims, where at) const
{
    std::vector<claim_ptr> sent;
    for (const auto& each : claims)
        sent.push_back(sent_now(each));
    std::optional<create_all_outcome> answer;
    backend_->start_create_all(
        std::move(sent), [&answer](create_all_outcome outcome) { answer.emplace(std::move(outcome)); });
    run_until(io_, [&] { return answer.has_value(); }, at);
    return std::move(*answer);
}

release_outcome driver::release(const claim_ptr& claim, where at) const
{
    return run_coro(io_, backend_->release(sent_now(claim), release_guarantee::released), at);
}

release_outcome driver::abandon(const claim_ptr& claim, where at) const
{
    return run_coro(io_, backend_->release(sent_now(claim), release_guarantee::settled), at);
}

extend_outcome driver::extend(const claim_ptr& claim, std::chrono::milliseconds ttl, where at) const
{
    return run_coro(io_, backend_->extend(sent_now(claim), ttl), at);
}

valid_outcome driver::valid(const claim_ptr& claim, where at) const
{
    return run_coro(io_, backend_->is_valid(sent_now(claim)), at);
}

hand_over_outcome driver::hand_over(const claim_ptr& held, const claim_ptr& next, where at) const
{
    return run_coro(io_, backend_->hand_over(sent_now(held), sent_now(next)), at);
}

std::string driver::export_ticket(const claim_ptr& held, where at) const
{
    std::optional<export_outcome> answer;
    backend_->start_export(held, [&answer](export_outcome outcome) { answer.emplace(std::move(outcome)); });
    run_until(io_, [&] { return answer.has_value(); }, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(!answer->error);
    }
    return answer->ticket;
}

create_outcome driver::adopt(std::string ticket, const claim_ptr& claim, where at) const
{
    std::optional<create_outcome> answer;
    backend_->start_adopt(
        std::move(ticket), sent_now(claim), [&answer](create_outcome outcome) { answer.emplace(std::move(outcome)); });
    run_until(io_, [&] { return answer.has_value(); }, at);
    return std::move(*answer);
}

std::vector<lock_status> driver::inspect(std::string key, where at) const
{
    return statuses(run_coro(io_, backend_->listing({.filter = {.key = std::move(key)}}), at));
}

std::vector<lock_status> driver::break_key(std::string key, where at) const
{
    return statuses(
        run_coro(io_, backend_->listing({.action = listing_action::break_key, .filter = {.key = std::move(key)}}), at));
}

std::vector<lock_status> driver::list(const filter& which, where at) const
{
    std::vector<lock_status> all;
    std::string cursor;
    do {
        auto page = run_coro(io_, backend_->listing({.filter = which, .cursor = cursor}), at);
        cursor = page.next;
        for (auto& each : statuses(std::move(page)))
            all.push_back(std::move(each));
    } while (!cursor.empty());
    return all;
}

group_outcome driver::group(std::string id, group_action what, std::chrono::milliseconds ttl, where at) const
{
    std::optional<group_outcome> answer;
    backend_->start_group(
        std::move(id), what, ttl, [&answer](group_outcome outcome) { answer.emplace(std::move(outcome)); });
    run_until(io_, [&] { return answer.has_value(); }, at);
    return std::move(*answer);
}

std::vector<lock_status> driver::release_group(std::string id, where at) const
{
    return statuses(group(std::move(id), group_action::release, {}, at));
}

std::vector<lock_status> driver::extend_group(std::string id, std::chrono::milliseconds ttl, where at) const
{
    return statuses(group(std::move(id), group_action::extend, ttl, at));
}

std::vector<lock_status> driver::purge(std::size_t limit, where at) const
{
    std::vector<lock_status> all;
    std::string cursor;
    do {
        listing_request request{.action = listing_action::purge, .cursor = cursor};
        if (limit != 0)
            request.limit = limit - all.size();
        auto step = run_coro(io_, backend_->listing(std::move(request)), at);
        cursor = step.next;
        for (auto& each : statuses(std::move(step)))
            all.push_back(std::move(each));
    } while (!cursor.empty() && (limit == 0 || all.size() < limit));
    return all;
}

running<std::uint64_t> driver::start_acquire(const claim_ptr& claim) const
{
    return start(io_, acquire(backend_, claim));
}

std::uint64_t driver::grant(const claim_ptr& claim, where at) const
{
    const auto outcome = create(claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == create_status::granted,
            "the create ended as " << outcome.status << (outcome.error ? ": " + outcome.error->detail : ""));
    }
    return outcome.fence;
}

std::vector<std::uint64_t> driver::grant_all(const std::vector<plain_claim_ptr>& claims, where at) const
{
    auto outcome = create_all(claims, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == create_status::granted);
        BOOST_TEST(outcome.fences.size() == claims.size());
    }
    outcome.fences.resize(claims.size());
    return std::move(outcome.fences);
}

create_outcome driver::check_refused(const claim_ptr& claim, where at) const
{
    auto outcome = create(claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == create_status::busy);
    }
    return outcome;
}

create_all_outcome driver::check_all_refused(const std::vector<plain_claim_ptr>& claims, where at) const
{
    auto outcome = create_all(claims, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == create_status::busy);
    }
    return outcome;
}

std::uint64_t driver::take_over(std::string ticket, const claim_ptr& claim, where at) const
{
    const auto outcome = adopt(std::move(ticket), claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == create_status::granted);
    }
    return outcome.fence;
}

void driver::release_held(const claim_ptr& claim, where at) const
{
    const auto outcome = release(claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(outcome.status == release_status::released);
    }
}

void driver::check_held(const claim_ptr& claim, where at) const
{
    const auto outcome = valid(claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(!outcome.error);
        BOOST_TEST(outcome.valid);
    }
}

void driver::check_not_held(const claim_ptr& claim, where at) const
{
    const auto outcome = valid(claim, at);
    COLOCK_CALLED_FROM(at)
    {
        BOOST_TEST(!outcome.error);
        BOOST_TEST(!outcome.valid);
    }
}

} // namespace colock::testing
