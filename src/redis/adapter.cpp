// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "redis/client.hpp"
#include "redis/cluster/cluster.hpp"
#include "redis/cluster/cluster_listing.hpp"
#include "redis/operations/claim_state.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/operations.hpp"
#include "redis/quorum_node.hpp"
#include "remote/adapter/adapter_base.hpp"
#include "util/cursor.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

namespace colock::inline v0::redis {

namespace detail {

using namespace std::chrono_literals;

class redis_adapter final : public remote::adapter_base<client>
{
public:
    using adapter_base::adapter_base;
    ~redis_adapter() override
    {
        if (cluster_)
            cluster_->retire();
    }

    [[nodiscard]] static std::shared_ptr<redis_adapter> make(const asio::any_io_executor& executor, settings config)
    {
        auto result = adapter_base::make<redis_adapter>(executor, std::move(config));
        if (result->config().cluster())
            result->cluster_ = cluster::make(executor, result->get_client().shared());
        return result;
    }

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        const bool standard = !config().plain();
        return {.name = "redis",
            .capabilities = {.shared = standard,
                .semaphore = standard,
                .no_ttl = true,
                .fence = standard,
                .list = true,
                .events = true,
                .create_all = standard,
                .groups = standard,
                .extends_groups = standard,
                .tickets = true},
            .limits = limits()};
    }

    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override
    {
        return get_client().max_clock_lead(ttl);
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        if (auto failure = refuse_key(claim->key())) {
            done(create_outcome::failed(std::move(failure)));
            return;
        }
        // Generating a token may throw, and the exception must reach the caller. The request is written later, on the
        // strand.
        static_cast<void>(claim->token());
        auto first = create_step::by_commands;
        if (auto* const state = find_state(*claim)) {
            // This is a repeated attempt, so the lock is probably still busy. The script also reports how long it stays
            // busy.
            first = create_step::by_script;
            if (state->source)
                state->source->mark_as_seen();
        } else if (claim->mode() == lock_mode::shared) {
            // The stored value of a reader is created once, and every request of this claim has to use the same value.
            static_cast<void>(state_of(*claim));
        }
        // Only a script can add a reader unless a writer holds the lock or waits. Only a script can write a group's
        // index in the same step.
        if (needs_sorted_sets(config(), *claim))
            first = create_step::by_script;
        get_client().submit(make_create(get_client(), std::move(claim), std::move(done), first));
    }

    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override
    {
        if (config().plain() || !are_in_one_slot(claims)) {
            adapter::start_create_all(std::move(claims), std::move(done));
            return;
        }
        if (claims.empty()) {
            done({.status = create_status::granted});
            return;
        }
        for (const auto& each : claims) {
            static_cast<void>(each->token());
            if (auto* const state = find_state(*each); state && state->source)
                state->source->mark_as_seen();
        }
        get_client().submit(make_create_all(get_client(), std::move(claims), std::move(done)));
    }

    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        if (auto* const state = guarantee == release_guarantee::settled ? find_state(*claim) : nullptr) {
            state->source.reset();
            if (!state->granted && !state->intent && state->creates.empty()) {
                if (has_separate_index(config(), *claim))
                    leave_group(get_client(), *claim);
                done({release_status::not_held, nullptr});
                return;
            }
        }
        get_client().submit(make_release(get_client(), std::move(claim), std::move(done), guarantee));
    }

    void start_wait(claim_ptr claim, lease_clock::time_point, completion<wait_outcome> done) override
    {
        auto& state = state_of(*claim);
        const auto channel = lock_key(config(), claim->key()).text();
        const auto owner = cluster_ ? cluster_->client_for(slot_of(channel)) : nullptr;
        auto& server = owner ? *owner : get_client();
        // In a cluster, the slot may have another owner since the last wait.
        if (!state.source || state.watched_server != &server)
            state.source.emplace(server.watch(channel));
        state.watched_server = &server;
        // In a cluster, a waiter polls while no message can reach it: until its subscription is active, and while its
        // lock may be at the node that takes the slot over.
        const bool polls = cluster_ && (state.asked || !state.source->is_active());
        if (!state.source->wait(*claim, done, 0, polls))
            done(wait_outcome{});
        if (polls)
            server.watch_again(channel);
        // The waiters of the former owner may have been woken just before this one was added.
        if (cluster_ && cluster_->client_for(slot_of(channel)).get() != &server)
            server.on_strand(server, [channel](client& former) {
                former.wake_waiters([&](std::string_view each) { return each == channel; });
            });
    }

    void cancel_wait(claim& claim) noexcept override
    {
        if (const auto* const state = find_state(claim); state && state->source)
            state->source->cancel_wait(claim);
    }

    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        const auto* const state = find_state(*next);
        // A waiter of another process sleeps until the expiry that it knows. A release message makes it check the lock
        // again.
        const bool may_end_sooner = next->ttl() != 0ms && (held->ttl() == 0ms || next->ttl() < held->ttl() ||
                                                              held->late_ttl() != held->ttl().max());
        const bool simple = !may_end_sooner && held->mode() == lock_mode::exclusive &&
                            next->mode() == lock_mode::exclusive && held->key() == next->key() && !held->in_doubt() &&
                            !(state && state->intent) && !is_grouped(config(), *held) && !is_grouped(config(), *next);
        if (config().plain() || !simple) {
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
            return;
        }
        const auto in_two_steps = [](adapter& self, claim_ptr from, claim_ptr to, completion<hand_over_outcome> end) {
            static_cast<redis_adapter&>(self).adapter::start_hand_over(std::move(from), std::move(to), std::move(end));
        };
        get_client().submit(make_hand_over(
            get_client(), {shared_from_this(), in_two_steps}, std::move(held), std::move(next), std::move(done)));
    }

    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) override
    {
        if (config().plain())
            adapter::start_group(std::move(id), action, ttl, std::move(done));
        else
            get_client().submit(make_group_action(get_client(), std::move(id), action, ttl, std::move(done)));
    }

    void start_export(claim_ptr held, completion<export_outcome> done) override
    {
        done({.ticket = make_ticket(config(), *held)});
    }

    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        if (auto failure = refuse_key(claim->key())) {
            done(create_outcome::failed(std::move(failure)));
            return;
        }
        if (!may_be_ticket(ticket, claim->mode())) {
            done(create_outcome::busy());
            return;
        }
        static_cast<void>(claim->token());
        // The stored value of a reader is created once, and every request of this claim has to use the same value.
        if (claim->mode() == lock_mode::shared)
            static_cast<void>(state_of(*claim));
        get_client().submit(make_adopt(get_client(), std::move(ticket), std::move(claim), std::move(done)));
    }

    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        const auto from = request.cursor.empty() || cluster_ ? 0 : colock::detail::read_number(request.cursor);
        const bool has_position = cluster_ ? is_cluster_cursor(request.cursor) : from.has_value();
        if (auto failure = refuse_listing(request, has_position))
            done({.error = std::move(failure)});
        else if (request.action == listing_action::purge && config().plain())
            done({});
        else if (cluster_ && !request.filter.key)
            start_cluster_listing(cluster_, get_client(), request, std::move(done));
        else
            get_client().submit(make_listing(get_client(), std::move(request), from.value_or(0), std::move(done)));
    }

    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override
    {
        if (cluster_)
            cluster_->close(deadline, std::move(done));
        else
            adapter_base::start_close(deadline, std::move(done));
    }
    void cancel_close() noexcept override
    {
        if (cluster_)
            cluster_->cancel_close();
        else
            adapter_base::cancel_close();
    }

private:
    [[nodiscard]] const settings& config() const noexcept { return get_client().config(); }

    /// Tells whether one script can take all locks.
    [[nodiscard]] bool are_in_one_slot(const std::vector<claim_ptr>& claims) const
    {
        const auto slot = [this](const claim_ptr& each) { return slot_of(lock_key(config(), each->key()).text()); };
        return !cluster_ || std::ranges::adjacent_find(claims, std::not_equal_to(), slot) == claims.end();
    }

    [[nodiscard]] failure_ptr refuse_key(std::string_view key) const
    {
        return config().reserves(key)
                   ? make_failure(errc::invalid_key, "keys that begin with {colock}# are colock's own")
                   : nullptr;
    }

    [[nodiscard]] failure_ptr refuse_listing(const listing_request& request, bool has_position) const
    {
        if (const auto& key = request.filter.key)
            return refuse_key(*key);
        // Without a prefix, every key of the database could be a lock.
        if (request.action == listing_action::list && config().prefix.empty())
            return make_failure(errc::unsupported, "listing needs a prefix; set options::prefix, or ask for one key");
        return has_position ? nullptr : colock::detail::not_a_cursor(traits().name);
    }

    /// Null if the URL names no cluster.
    std::shared_ptr<cluster> cluster_;
};

std::shared_ptr<adapter> make_quorum_node(const asio::any_io_executor& executor, const options& settings)
{
    detail::settings config(settings);
    config.is_quorum_node = true;
    return redis_adapter::make(executor, std::move(config));
}

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    return detail::redis_adapter::make(executor, detail::settings(detail::take_url_options(std::move(settings))));
}

} // namespace colock::inline v0::redis
