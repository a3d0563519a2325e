// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/adapter.hpp"
#include "support/driver.hpp"
#include "support/instrumented_adapter.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

/// A quorum of three in-memory backends, each behind a scripted adapter, in virtual time.
struct three_nodes
{
    virtual_clock clock;
    using source_location = std::source_location;
    static constexpr std::chrono::milliseconds node_timeout = 500ms, ttl = 10s;
    static constexpr std::size_t a = 0, b = 1, c = 2;

    std::optional<asio::io_context> context{std::in_place};
    std::vector<std::shared_ptr<adapter>> stores;
    std::vector<std::shared_ptr<instrumented_adapter>> nodes;
    std::optional<driver> env;

    explicit three_nodes(timing mode = timing::posted)
    {
        for (int i = 0; i < 3; ++i) {
            stores.push_back(memory::make_adapter(io().get_executor()));
            nodes.push_back(std::make_shared<instrumented_adapter>(stores.back(), mode));
        }
        env.emplace(io(), quorum::make_adapter(io().get_executor(), {nodes.begin(), nodes.end()},
                              {.name = "quorum", .operation_timeout = node_timeout, .poll_interval = 250ms}));
    }

    ~three_nodes()
    {
        for (const auto& node : nodes) {
            for (const auto& breach : node->breaches())
                BOOST_TEST(breach.empty(), "the contract of adapter was broken: " << breach);
        }
    }

    [[nodiscard]] asio::io_context& io() { return *context; }

    /// Makes every operation on the node end as `action` says.
    void always(std::size_t node, const step& action)
    {
        for (const auto each : {operation::create, operation::release, operation::abandon, operation::extend,
                 operation::is_valid, operation::inspect, operation::list, operation::break_key, operation::adopt})
            nodes[node]->always(each, action);
    }
    void disconnect(std::size_t node) { always(node, step::fail(errc::unavailable, "away")); }
    void reconnect(std::size_t node) { nodes[node]->reset(); }

    /// Acquires the key on one node, unknown to the quorum.
    plain_claim_ptr take(std::size_t node, std::string key = "k")
    {
        const auto claim = sent_now(driver::exclusive(std::move(key)));
        stores[node]->start_create(claim, [](const create_outcome&) {});
        return claim;
    }
    /// Number of holders that are stored on a node.
    [[nodiscard]] std::size_t holder_count(std::size_t node) { return stored_in(*stores[node]).size(); }
    /// Returns one digit for each node: its number of holders.
    [[nodiscard]] std::string holder_counts()
    {
        return std::to_string(holder_count(a)) + std::to_string(holder_count(b)) + std::to_string(holder_count(c));
    }
    /// Makes the node lose its data for the key.
    void lose_data(std::size_t node, const std::string& key = "k")
    {
        stores[node]->start_listing(
            {.action = listing_action::break_key, .filter = {.key = key}}, [](const list_outcome&) {});
    }

    void ready(source_location at = source_location::current()) { run_ready(io(), at); }
    void pass_time(lease_clock::duration span, source_location at = source_location::current())
    {
        virtual_clock::advance(io(), span, 50ms, at);
    }
    [[nodiscard]] bool idle(source_location at = source_location::current())
    {
        ready(at);
        static_cast<void>(io().poll());
        const bool none_left = io().stopped();
        io().restart();
        return none_left;
    }
    [[nodiscard]] std::uint64_t unproven() const { return env->backend().unproven(); }
};

/// Claims whose release could not reach a node.
struct unreleased_claims : three_nodes
{
    /// Acquires the key on all nodes, and releases it while `node` is disconnected.
    void leave_claim_on(std::size_t node, std::chrono::milliseconds claim_ttl = ttl, const std::string& key = "k")
    {
        const auto claim = driver::exclusive(key, claim_ttl);
        env->grant(claim);
        ready();
        disconnect(node);
        env->release_held(claim);
        ready();
    }
    [[nodiscard]] std::size_t attempts(std::size_t node) const { return nodes[node]->count(operation::abandon); }
};

/// Each node completes inside the call.
struct immediate_nodes : three_nodes
{
    immediate_nodes() : three_nodes(timing::immediate) {}
};

} // namespace colock::testing
