// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "redis/client.hpp"
#include "redis/operations/claim_state.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/operations.hpp"

#include <utility>

namespace colock::redis {

namespace detail {

class redis_adapter final : public adapter, public remote::client_events
{
public:
    explicit redis_adapter(asio::any_io_executor executor) : adapter(std::move(executor)) {}
    ~redis_adapter() override
    {
        if (client_)
            client_->retire();
    }

    static std::shared_ptr<redis_adapter> make(const asio::any_io_executor& executor, settings checked)
    {
        auto made = std::make_shared<redis_adapter>(executor);
        made->client_ = client::make(executor, std::move(checked), made);
        return made;
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "redis"; }

    [[nodiscard]] colock::capabilities capabilities() const noexcept override
    {
        const bool standard = !config().plain();
        return {.shared = standard,
            .semaphore = standard,
            .no_ttl = true,
            .fifo = false,
            .fence = standard,
            .list = true,
            .events = true,
            .immediate = false};
    }

    [[nodiscard]] adapter_limits limits() const noexcept override
    {
        adapter_limits all;
        all.answers_within = config().operation_timeout;
        return all;
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        if (claim->inherited()) {
            done(create_outcome::failed(make_failure(errc::forked)));
            return;
        }
        // A token that cannot be made is the caller's to hear of; the request is written where nobody could be told.
        static_cast<void>(claim->token());
        auto first = create_step::short_way;
        if (auto* const state = find_state(*claim)) {
            // A second attempt: busy is as likely as not, and the script tells at once how long.
            first = create_step::by_script;
            if (state->source)
                state->source->look();
        } else if (claim->mode() == lock_mode::shared) {
            // The name that a reader is stored under is made once.
            static_cast<void>(state_of(*claim));
            // To take the lock and to give it back for a writer costs the writer more than a script costs us.
            if (client_->writers().may_wait(*claim))
                first = create_step::by_script;
        }
        client_->submit(make_create(*client_, std::move(claim), std::move(done), first));
    }

    void start_release(claim_ptr claim, completion<release_outcome> done) override
    {
        if (claim->inherited()) {
            done({release_status::not_held, nullptr});
            return;
        }
        client_->submit(make_give_back(*client_, std::move(claim), std::move(done), promise::released));
    }

    void start_abandon(claim_ptr claim, completion<release_outcome> done) override
    {
        if (claim->inherited()) {
            done({release_status::not_held, nullptr});
            return;
        }
        if (auto* const state = find_state(*claim)) {
            state->source.reset();
            if (!state->granted && !state->intent && state->creates.empty()) {
                done({release_status::not_held, nullptr});
                return;
            }
        }
        client_->submit(make_give_back(*client_, std::move(claim), std::move(done), promise::for_good));
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
        if (claim->inherited()) {
            done(woken{});
            return;
        }
        auto& state = state_of(*claim);
        if (!state.source)
            state.source.emplace(client_->watch(lock_key(config(), claim->key()).text()));
        if (!state.source->wait(*claim, done))
            done(woken{});
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
                            held->key() == next->key() && !held->tainted() && !held->inherited() &&
                            !next->inherited() && !(state && state->intent);
        if (config().plain() || !simple) {
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
            return;
        }
        const auto in_two_steps = [](adapter& self, claim_ptr from, claim_ptr to, completion<hand_over_outcome> end) {
            static_cast<redis_adapter&>(self).adapter::start_hand_over(std::move(from), std::move(to), std::move(end));
        };
        client_->submit(make_hand_over(
            *client_, {shared_from_this(), in_two_steps}, std::move(held), std::move(next), std::move(done)));
    }

    void start_inspect(std::string key, completion<list_outcome> done) override
    {
        client_->submit(make_key_listing(*client_, std::move(key), key_purpose::inspect, filter{}, std::move(done)));
    }

    void start_break(std::string key, completion<list_outcome> done) override
    {
        client_->submit(make_key_listing(*client_, std::move(key), key_purpose::remove, filter{}, std::move(done)));
    }

    void start_list(filter which, std::string, completion<list_outcome> done) override
    {
        if (which.key) {
            auto key = *which.key;
            client_->submit(
                make_key_listing(*client_, std::move(key), key_purpose::inspect, std::move(which), std::move(done)));
        } else if (!refuses_walk(done)) {
            client_->submit(make_walk(*client_, walk_purpose::list, std::move(which), 0, std::move(done)));
        }
    }

    void start_purge(std::size_t limit, completion<list_outcome> done) override
    {
        constexpr std::size_t all = 1'000'000'000;
        if (config().plain())
            done({});
        else
            client_->submit(
                make_walk(*client_, walk_purpose::sweep, filter{}, limit == 0 ? all : limit, std::move(done)));
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
    [[nodiscard]] const settings& config() const noexcept { return client_->config(); }

    /// Without a prefix every key of the database could be a lock.
    [[nodiscard]] bool refuses_walk(completion<list_outcome>& done) const
    {
        if (!config().prefix.empty())
            return false;
        done({{}, make_failure(errc::unsupported, "listing needs a prefix; set options::prefix, or ask for one key")});
        return true;
    }

    std::shared_ptr<client> client_;
};

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    return detail::redis_adapter::make(executor, detail::settings(settings));
}

} // namespace colock::redis
