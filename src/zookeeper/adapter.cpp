// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/zookeeper/adapter.hpp>

#include "remote/reports.hpp"
#include "zookeeper/client.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/operations.hpp"

#include <memory>
#include <utility>

namespace colock::zookeeper {

namespace detail {

namespace {

/// Both halves of a hand-over, until the second has ended.
struct halves
{
    explicit halves(completion<hand_over_outcome> then) : done(std::move(then)) {}
    void end_one()
    {
        if (--open == 0)
            done(std::move(outcome));
    }

    completion<hand_over_outcome> done;
    hand_over_outcome outcome;
    int open = 2;
};

} // namespace

class zookeeper_adapter final : public adapter, public remote::client_events
{
public:
    explicit zookeeper_adapter(asio::any_io_executor executor) : adapter(std::move(executor)) {}
    ~zookeeper_adapter() override
    {
        if (client_)
            client_->retire();
    }

    static std::shared_ptr<zookeeper_adapter> make(const asio::any_io_executor& executor, settings checked)
    {
        auto made = std::make_shared<zookeeper_adapter>(executor);
        made->client_ = client::make(executor, std::move(checked), made);
        return made;
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "zookeeper"; }

    [[nodiscard]] colock::capabilities capabilities() const noexcept override
    {
        const auto layout = client_->config().layout;
        return {.shared = layout != zookeeper::layout::curator_mutex,
            .semaphore = layout == zookeeper::layout::standard,
            .no_ttl = true,
            .fifo = true,
            .fence = true,
            .list = true,
            .events = true,
            .expires = false};
    }

    [[nodiscard]] adapter_limits limits() const noexcept override
    {
        adapter_limits all;
        all.answers_within = client_->config().operation_timeout;
        return all;
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        if (claim->inherited()) {
            done(create_outcome::failed(make_failure(errc::forked)));
            return;
        }
        if (auto* const state = find_state(*claim); state && state->source)
            state->source->look();
        client_->submit(make_create(*client_, std::move(claim), std::move(done)));
    }

    void start_release(claim_ptr claim, completion<release_outcome> done) override
    {
        give_back(std::move(claim), std::move(done), promise::released);
    }

    void start_abandon(claim_ptr claim, completion<release_outcome> done) override
    {
        give_back(std::move(claim), std::move(done), promise::for_good);
    }

    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override
    {
        if (claim->inherited()) {
            done({extend_status::not_held, nullptr});
            return;
        }
        client_->submit(make_extend(*client_, std::move(claim), ttl, std::move(done)));
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        if (claim->inherited()) {
            done({false, nullptr});
            return;
        }
        client_->submit(make_is_valid(*client_, std::move(claim), std::move(done)));
    }

    void start_wait(claim_ptr claim, lease_clock::time_point, completion<woken> done) override
    {
        auto* const state = find_state(*claim);
        if (claim->inherited() || !state || state->blocker.empty()) {
            done(woken{});
            return;
        }
        if (state->watched != state->blocker) {
            state->source.reset();
            state->source.emplace(client_->watch(state->blocker));
            state->watched = state->blocker;
        }
        if (!state->source->wait(*claim, done))
            done(woken{});
    }

    void cancel_wait(claim& claim) noexcept override
    {
        if (const auto* const state = find_state(claim); state && state->source)
            state->source->cancel_wait(claim);
    }

    /// The server carries out what is asked in one session in order, and what is asked in one turn travels as one.
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        if (held->tainted() || held->inherited() || next->inherited()) {
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
            return;
        }
        const auto both = std::make_shared<halves>(std::move(done));
        start_release(std::move(held), [both](release_outcome got) {
            both->outcome.released = std::move(got);
            both->end_one();
        });
        start_create(std::move(next), [both](create_outcome got) {
            both->outcome.created = std::move(got);
            both->end_one();
        });
    }

    void start_inspect(std::string key, completion<list_outcome> done) override
    {
        client_->submit(make_key_listing(*client_, std::move(key), key_purpose::inspect, filter{}, std::move(done)));
    }

    void start_break(std::string key, completion<list_outcome> done) override
    {
        client_->submit(make_key_listing(*client_, std::move(key), key_purpose::remove, filter{}, std::move(done)));
    }

    void start_list(filter which, std::string cursor, completion<list_outcome> done) override
    {
        if (which.key) {
            auto key = *which.key;
            client_->submit(
                make_key_listing(*client_, std::move(key), key_purpose::inspect, std::move(which), std::move(done)));
        } else {
            client_->submit(make_page(*client_, std::move(which), cursor, std::move(done)));
        }
    }

    void start_purge(std::size_t, completion<list_outcome> done) override
    {
        client_->submit(make_purge(*client_, std::move(done)));
    }

    void start_close(lease_clock::duration deadline, completion<closed> done) override
    {
        client_->close(deadline, std::move(done));
    }

    void on_ready() noexcept override { notify_ready(); }
    void on_unreachable(const failure_ptr& why, std::string_view address) noexcept override
    {
        notify_unreachable(why, address);
    }
    void on_suspended(const error_code& why) noexcept override { notify_suspended(why); }
    void on_reconnected() noexcept override { notify_reconnected(); }
    void on_warning(std::string_view message) noexcept override { notify_warning(message); }

private:
    void give_back(claim_ptr claim, completion<release_outcome> done, promise given)
    {
        auto* const state = claim->inherited() ? nullptr : find_state(*claim);
        if (!state || (state->node.empty() && state->creates.empty())) {
            if (state)
                state->stop_waiting();
            done({release_status::not_held, nullptr});
            return;
        }
        client_->submit(make_give_back(*client_, std::move(claim), std::move(done), given));
    }

    std::shared_ptr<client> client_;
};

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    return detail::zookeeper_adapter::make(executor, detail::settings(settings));
}

} // namespace colock::zookeeper
