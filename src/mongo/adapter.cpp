// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/mongo/adapter.hpp>

#include "mongo/client.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/operations.hpp"
#include "remote/adapter/adapter_base.hpp"
#include "remote/adapter/default_clock_lead.hpp"
#include "util/await_completion.hpp"
#include "util/cursor.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace colock::inline v0::mongo {

namespace detail {

class mongo_adapter final : public remote::adapter_base<client>
{
public:
    using adapter_base::adapter_base;

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "mongodb",
            .capabilities = {.shared = true,
                .semaphore = true,
                .no_ttl = true,
                .fence = true,
                .list = true,
                .lists_fence = true,
                .events = true,
                .groups = true,
                .extends_groups = true,
                .tickets = true},
            .limits = limits()};
    }

    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override
    {
        return get_client().config().max_clock_lead.value_or(remote::default_clock_lead(ttl));
    }

    [[nodiscard]] waiting_by waiting() const noexcept { return get_client().waiting(); }
    void start_indexes(completion<failure_ptr> done) const
    {
        get_client().submit(make_indexes(get_client(), std::move(done)));
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        if (auto* const state = find_state(*claim); state && state->source)
            state->source->mark_as_seen();
        get_client().submit(make_create(get_client(), std::move(claim), std::move(done)));
    }

    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        if (auto* const state = guarantee == release_guarantee::settled ? find_state(*claim) : nullptr) {
            state->source.reset();
            if (!state->granted && !state->is_waiting_writer && state->in_doubt_until == 0) {
                done({release_status::not_held, nullptr});
                return;
            }
        }
        get_client().submit(make_release(get_client(), std::move(claim), std::move(done), guarantee));
    }

    void start_wait(claim_ptr claim, lease_clock::time_point, completion<wait_outcome> done) override
    {
        auto& state = state_of(*claim);
        if (!state.source)
            state.source.emplace(get_client().watch(claim->key()));
        if (!state.source->wait(*claim, done))
            done(wait_outcome{});
    }

    void cancel_wait(claim& claim) noexcept override
    {
        if (const auto* const state = find_state(claim); state && state->source)
            state->source->cancel_wait(claim);
    }

    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        const auto* const state = find_state(*next);
        const bool simple = held->mode() == lock_mode::exclusive && next->mode() == lock_mode::exclusive &&
                            held->key() == next->key() && !held->in_doubt() && !(state && state->is_waiting_writer);
        if (simple)
            get_client().submit(make_hand_over(get_client(), std::move(held), std::move(next), std::move(done)));
        else
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
    }

    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) override
    {
        index_once();
        get_client().submit(make_group_action(get_client(), std::move(id), action, ttl, std::move(done)));
    }

    void start_export(claim_ptr held, completion<export_outcome> done) override
    {
        done({.ticket = held->token().hex()});
    }

    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        if (ticket.size() != 2 * token::size || ticket.find_first_not_of("0123456789abcdef") != ticket.npos)
            done(create_outcome::busy());
        else
            get_client().submit(make_adopt(get_client(), std::move(ticket), std::move(claim), std::move(done)));
    }

    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        auto from = page_start::from(request.cursor);
        if (!from) {
            done({.error = colock::detail::not_a_cursor(traits().name)});
            return;
        }
        if (!request.filter.key)
            index_once();
        get_client().submit(make_listing(get_client(), std::move(request), *std::move(from), std::move(done)));
    }

private:
    /// Creates the indexes, once. No operation waits for them: they only make results faster.
    void index_once()
    {
        if (indexed_.exchange(true))
            return;
        start_indexes([self = std::weak_ptr(std::static_pointer_cast<mongo_adapter>(shared_from_this()))](
                          const failure_ptr& failure) {
            if (const auto notified = self.lock(); notified && failure)
                notified->contact().warn(
                    "the indexes could not be made, so list, purge and groups may be slow: " + failure->detail);
        });
    }

    std::atomic<bool> indexed_{false};
};

namespace {

const mongo_adapter& checked_cast_adapter(const adapter* adapter)
{
    const auto* const ours = dynamic_cast<const mongo_adapter*>(adapter);
    if (!ours) {
        throw validation_error(errc::invalid_options,
            {.detail = "the adapter is not one of MongoDB; pass an adapter of colock::mongo::make_adapter"});
    }
    return *ours;
}

} // namespace

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    using detail::mongo_adapter;
    return mongo_adapter::make<mongo_adapter>(
        executor, detail::settings(detail::take_url_options(std::move(settings))));
}

waiting_by waiting(const adapter& adapter)
{
    return detail::checked_cast_adapter(&adapter).waiting();
}

asio::awaitable<void> create_indexes(std::shared_ptr<adapter> adapter)
{
    const auto& ours = detail::checked_cast_adapter(adapter.get());
    const auto failure = co_await colock::detail::await_completion<failure_ptr>(
        [&ours](auto done) { ours.start_indexes(std::move(done)); });
    if (failure) {
        throw error(failure->code, {.backend = std::string(adapter->traits().name),
                                       .attempts = 1,
                                       .cause = failure->cause,
                                       .detail = failure->detail});
    }
}

} // namespace colock::inline v0::mongo
