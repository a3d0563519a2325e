// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/zookeeper/adapter.hpp>

#include "remote/adapter/adapter_base.hpp"
#include "util/cursor.hpp"
#include "zookeeper/client.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/operations.hpp"

#include <memory>
#include <utility>

namespace colock::inline v0::zookeeper {

namespace detail {

namespace {

/// Collects the outcomes of the two halves of a hand-over, and completes it after the second one.
struct hand_over_state
{
    explicit hand_over_state(completion<hand_over_outcome> handler) : done(std::move(handler)) {}
    void finish_one()
    {
        if (--open == 0)
            done(std::move(outcome));
    }

    completion<hand_over_outcome> done;
    hand_over_outcome outcome;
    int open = 2;
};

} // namespace

class zookeeper_adapter final : public remote::adapter_base<client>
{
public:
    using adapter_base::adapter_base;

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        const auto layout = get_client().config().layout;
        const bool standard = layout == zookeeper::layout::standard;
        return {.name = "zookeeper",
            .capabilities = {.shared = layout != zookeeper::layout::curator_mutex,
                .semaphore = standard,
                .no_ttl = true,
                .fifo = true,
                .fence = true,
                .list = true,
                .lists_fence = true,
                .events = true,
                .groups = standard,
                .expires = false},
            .limits = limits()};
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        get_client().submit(make_create(get_client(), std::move(claim), std::move(done)));
    }

    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        auto* const state = find_state(*claim);
        if (!state || (state->node.empty() && state->creates.empty() && !state->indexed)) {
            if (state)
                state->stop_waiting();
            done({release_status::not_held, nullptr});
            return;
        }
        get_client().submit(make_release(get_client(), std::move(claim), std::move(done), guarantee));
    }

    void start_wait(claim_ptr claim, lease_clock::time_point, completion<wait_outcome> done) override
    {
        auto* const state = find_state(*claim);
        if (!state || state->predecessor.empty()) {
            done(wait_outcome{});
            return;
        }
        if (state->watched != state->predecessor) {
            state->source.reset();
            state->source.emplace(get_client().watch(state->predecessor));
            state->watched = state->predecessor;
        } else {
            get_client().watch_again(state->predecessor);
        }
        // A claim that waits for its own node is the first in the queue, and is woken by every event.
        const auto checked_on = state->predecessor == state->node ? 0 : state->session;
        if (!state->source->wait(*claim, done, checked_on))
            done(wait_outcome{});
    }

    void cancel_wait(claim& claim) noexcept override
    {
        if (auto* const state = find_state(claim); state && state->source)
            state->only_polls = state->source->cancel_wait(claim);
    }

    /// One round trip: the server carries out the requests of one session in order, and requests that are started in
    /// the same event-loop iteration are sent in one write.
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        if (held->in_doubt()) {
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
            return;
        }
        // `next` may wait for the node that is about to be removed, so its next attempt must not only poll.
        if (auto* const state = find_state(*next))
            state->only_polls = false;
        const auto shared_state = std::make_shared<hand_over_state>(std::move(done));
        start_release(std::move(held), release_guarantee::released, [shared_state](release_outcome outcome) {
            shared_state->outcome.released = std::move(outcome);
            shared_state->finish_one();
        });
        start_create(std::move(next), [shared_state](create_outcome outcome) {
            shared_state->outcome.created = std::move(outcome);
            shared_state->finish_one();
        });
    }

    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) override
    {
        // ZooKeeper has no server-side TTL, so only the holder tracks expiry.
        if (action == group_action::extend || !get_client().config().standard())
            adapter::start_group(std::move(id), action, ttl, std::move(done));
        else
            get_client().submit(make_group_release(get_client(), std::move(id), std::move(done)));
    }

    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        const bool standard = get_client().config().standard();
        if (auto from = page_start::from(request.cursor, standard ? page_start::bucket_count : 1))
            get_client().submit(make_listing(get_client(), std::move(request), *std::move(from), std::move(done)));
        else
            done({.error = colock::detail::not_a_cursor(traits().name)});
    }
};

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    using detail::zookeeper_adapter;
    return zookeeper_adapter::make<zookeeper_adapter>(
        executor, detail::settings(detail::take_url_options(std::move(settings))));
}

} // namespace colock::inline v0::zookeeper
