// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/memory/adapter.hpp>

#include "memory/store.hpp"
#include "util/option_errors.hpp"

#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::memory {

namespace {

class memory_adapter final : public colock::adapter
{
public:
    memory_adapter(asio::any_io_executor executor, const options& settings)
        : adapter(std::move(executor)), store_(std::make_shared<store>(settings))
    {
        contact().set_up();
    }
    ~memory_adapter() override { store_->clear(); }

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "memory",
            .capabilities = {.shared = true,
                .semaphore = true,
                .no_ttl = true,
                .fifo = true,
                .fence = true,
                .list = true,
                .lists_fence = true,
                .events = true,
                .create_all = true,
                .groups = true,
                .extends_groups = true,
                .tickets = true,
                .immediate = true}};
    }

    // A completion may destroy the adapter, so each function calls it last.

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        done(store_->create(std::move(claim)));
    }
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override
    {
        done(store_->create_all(claims));
    }
    void start_release(claim_ptr claim, release_guarantee, completion<release_outcome> done) override
    {
        done({store_->release(*claim), nullptr});
    }
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override
    {
        done({store_->extend(*claim, ttl), nullptr});
    }
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        done({store_->is_valid(*claim), nullptr});
    }
    void start_wait(claim_ptr claim, lease_clock::time_point, completion<wait_outcome> done) override
    {
        store_->wait(*claim, std::move(done));
    }
    void cancel_wait(claim& claim) noexcept override { store_->cancel_wait(claim); }
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        done(store_->hand_over(*held, std::move(next)));
    }
    void start_export(claim_ptr held, completion<export_outcome> done) override
    {
        done({.ticket = store_->export_ticket(*held)});
    }
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        done(store_->adopt(ticket, std::move(claim)));
    }
    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        done(store_->listing(request));
    }
    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) override
    {
        done(action == group_action::extend ? store_->extend_group(id, ttl)
                                            : group_outcome{.locks = store_->release_group(id)});
    }

private:
    void context_shutdown() noexcept override { store_->drop_all_waits(); }

    const std::shared_ptr<store> store_;
};

void check(const options& settings)
{
    using colock::detail::in_words;
    using colock::detail::refuse_options;
    if (settings.sweep_interval <= settings.sweep_interval.zero())
        refuse_options("memory", "sweep_interval is " + in_words(settings.sweep_interval) + ": set more than 0");
    if (settings.sweep_batch == 0)
        refuse_options("memory", "sweep_batch is 0: set at least 1");
}

} // namespace

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    check(settings);
    return std::make_shared<memory_adapter>(std::move(executor), settings);
}

} // namespace colock::inline v0::memory
