// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace asio = boost::asio;

/// The data on the server.
struct table
{
    struct row
    {
        colock::token token{};
        colock::lease_clock::time_point expires{};
        std::uint64_t fence = 0;
    };
    std::map<std::string, row> rows{};
    std::uint64_t last_fence = 0;
};

//[ adapter
// A table on a server with a delay of 1 ms. The strand makes the adapter safe on a context with many threads.
class table_adapter : public colock::awaitable_adapter
{
public:
    table_adapter(const asio::any_io_executor& executor, std::shared_ptr<table> server)
        : awaitable_adapter(asio::make_strand(executor)), table_(std::move(server))
    {
    }

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "table", .capabilities = {.fence = true}};
    }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        co_await round_trip();
        const auto now = colock::lease_clock::now();
        auto& found = table_->rows[claim->key()];
        // A repeated create of the same claim finds its own grant, because the first answer may have been lost.
        const bool is_ours = found.token == claim->token() && now < found.expires;
        if (!is_ours && now < found.expires)
            co_return colock::create_outcome::busy(found.expires - now);
        if (!is_ours)
            found.fence = ++table_->last_fence;
        found.token = claim->token();
        found.expires = now + claim->ttl();
        co_return colock::create_outcome::granted(found.fence);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        co_await round_trip();
        if (!find_ours(*claim))
            co_return colock::release_outcome{colock::release_status::not_held};
        table_->rows.erase(claim->key());
        co_return colock::release_outcome{};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        co_await round_trip();
        auto* const ours = find_ours(*claim);
        if (!ours)
            co_return colock::extend_outcome{colock::extend_status::not_held};
        ours->expires = colock::lease_clock::now() + ttl;
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return colock::valid_outcome{find_ours(*claim) != nullptr};
    }

private:
    asio::awaitable<void> round_trip()
    {
        co_await colock::lease_timer(executor(), std::chrono::milliseconds(1)).async_wait(asio::deferred);
    }
    table::row* find_ours(const colock::claim& claim)
    {
        const auto found = table_->rows.find(claim.key());
        const bool is_ours = found != table_->rows.end() && found->second.token == claim.token() &&
                             colock::lease_clock::now() < found->second.expires;
        return is_ours ? &found->second : nullptr;
    }

    const std::shared_ptr<table> table_;
};
//]
