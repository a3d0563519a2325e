// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// Result of any operation.
struct ending
{
    /// The lock was granted, released, extended or valid, or the list was complete.
    bool success = false;
    failure_ptr failed{};
};

inline ending ending_of(create_outcome of)
{
    return {of.status == create_status::granted, std::move(of.error)};
}

inline ending ending_of(release_outcome of)
{
    return {of.status == release_status::released, std::move(of.error)};
}

inline ending ending_of(extend_outcome of)
{
    return {of.status == extend_status::extended, std::move(of.error)};
}

inline ending ending_of(valid_outcome of)
{
    return {of.valid, std::move(of.error)};
}

inline ending ending_of(list_outcome of)
{
    return {!of.locks.empty(), std::move(of.error)};
}

template <class Outcome>
asio::awaitable<ending> end_of(asio::awaitable<Outcome> operation)
{
    co_return ending_of(co_await std::move(operation));
}

inline constexpr auto lock_name = "{colock}:k";
inline constexpr auto fence_name = "{colock}#fence";

/// A client behind a proxy that can lose data, and a second client with a direct connection.
struct fixture
{
    using action = std::function<void()>;

    fixture(redis_server& shared, redis::options settings) : server(shared), between(shared.port())
    {
        server({"FLUSHALL"});
        redis::options direct_options;
        direct_options.url = shared.url();
        direct_options.layout = settings.layout;
        settings.url = between.url();
        // Health checks must not close connections, so only what the test cuts is lost.
        settings.health_interval = 1min;
        // A long timeout shows timers that are still armed after everything was closed.
        settings.idle_timeout = direct_options.idle_timeout = 10min;
        client.emplace(std::move(settings));
        direct.emplace(client->io, redis::make_adapter(client->io.get_executor(), direct_options));
    }
    ~fixture() { run_coro(client->io, direct->backend().close(1s)); }

    [[nodiscard]] asio::io_context& io() { return client->io; }
    [[nodiscard]] driver& test_driver() { return client->test_driver; }
    [[nodiscard]] adapter& backend() { return client->test_driver.backend(); }
    [[nodiscard]] bool has(std::string_view key) { return server({"EXISTS", key}) == "1"; }
    /// Tells whether the latest of our claims has stored its intent.
    [[nodiscard]] bool has_intent()
    {
        return !server({"ZSCORE", lock_name, 'w' + own.back()->token().hex()}).starts_with("(");
    }

    void open_connection()
    {
        const auto warm = driver::exclusive("warm");
        test_driver().grant(warm);
        test_driver().release_held(warm);
    }

    plain_claim_ptr ours(plain_claim_ptr added) { return own.emplace_back(std::move(added)); }
    plain_claim_ptr our_grant(plain_claim_ptr added)
    {
        test_driver().grant(added);
        return ours(std::move(added));
    }
    plain_claim_ptr their_grant(plain_claim_ptr added)
    {
        direct->grant(added);
        return others.emplace_back(std::move(added));
    }

    running<ending> create(const plain_claim_ptr& claim)
    {
        return start(io(), [](fixture& env, plain_claim_ptr wanted) -> asio::awaitable<ending> {
            wanted->set_operation_start(lease_clock::now());
            auto outcome = ending_of(co_await env.backend().create(wanted));
            if (outcome.failed && outcome.failed->code == errc::outcome_unknown)
                env.mark_in_doubt(wanted);
            co_return outcome;
        }(*this, claim));
    }
    running<ending> hand_over(const plain_claim_ptr& held, const plain_claim_ptr& next)
    {
        return start(io(), [](fixture& env, plain_claim_ptr from, plain_claim_ptr to) -> asio::awaitable<ending> {
            to->set_operation_start(lease_clock::now());
            auto outcome = co_await env.backend().hand_over(from, to);
            if (outcome.created.error)
                env.mark_in_doubt(to);
            // If one of the two has failed, the other has, too.
            BOOST_TEST(!outcome.created.error == !outcome.released.error);
            co_return ending_of(std::move(outcome.created));
        }(*this, held, next));
    }
    template <class Outcome>
    running<ending> begin(asio::awaitable<Outcome> operation)
    {
        return start(io(), end_of(std::move(operation)));
    }

    void mark_in_doubt(const plain_claim_ptr& claim)
    {
        claim->mark_in_doubt();
        in_doubt.push_back(claim);
    }

    /// Settles the claims as the core does: tries until no claim can hold anything.
    void settle()
    {
        for (const auto& claim : own) {
            auto outcome = test_driver().abandon(claim);
            for (int i = 0; i < 10 && outcome.status == release_status::failed; ++i)
                outcome = test_driver().abandon(claim);
            BOOST_TEST((outcome.status != release_status::failed));
        }
        for (const auto& claim : in_doubt)
            BOOST_TEST(!claim->in_doubt());
        for (const auto& claim : others)
            direct->release(claim);
    }

    void check_nothing_left()
    {
        const auto left = server({"KEYS", "*"});
        BOOST_TEST((left.empty() || left == std::string(fence_name) + "\n"), left);
    }

    void check_usable()
    {
        for (const auto& claim : {driver::exclusive("after"), driver::shared("after")}) {
            if (claim->mode() == lock_mode::shared && !backend().traits().capabilities.shared)
                continue;
            test_driver().grant(claim);
            BOOST_TEST((test_driver().extend(claim, 10s).status == extend_status::extended));
            test_driver().check_held(claim);
            test_driver().release_held(claim);
        }
    }

    /// Checks that the context runs out of work, so no operation is left.
    void check_nothing_hangs()
    {
        run_coro(io(), backend().close(5s));
        run_coro(io(), direct->backend().close(5s));
        io().restart();
        io().run_for(30s);
        BOOST_TEST(io().stopped());
    }

    redis_server& server;
    redis_faulty_proxy between;
    std::optional<client_side> client;
    std::optional<driver> direct;
    std::vector<plain_claim_ptr> own;
    std::vector<plain_claim_ptr> others;
    std::vector<plain_claim_ptr> in_doubt;
    /// Operations that are sent in one batch with the tested operation.
    std::vector<running<ending>> batch_mates;
    /// Undoes what the preparation of the operation has broken.
    action repair{};
};

} // namespace colock::testing
