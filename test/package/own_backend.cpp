// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Runs the contract tests against an external backend, in a project that only uses colock.
//[ main
#define BOOST_TEST_MODULE own_backend
#include <boost/test/included/unit_test.hpp>

#include <colock/testing/adapter_contract.hpp>
//]
#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/strand.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace asio = boost::asio;

/// The holder of each key, and the time of its expiry.
using holders = std::map<std::string, std::pair<colock::token, colock::lease_clock::time_point>>;

class map_adapter final : public colock::awaitable_adapter
{
public:
    map_adapter(const asio::any_io_executor& executor, std::shared_ptr<holders> store)
        : awaitable_adapter(asio::make_strand(executor)), store_(std::move(store))
    {
    }

    colock::adapter_traits traits() const noexcept override { return {.name = "map"}; }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        const auto now = colock::lease_clock::now();
        auto& [holder, until] = (*store_)[claim->key()];
        if (holder != claim->token() && now < until)
            co_return colock::create_outcome::busy(until - now);
        holder = claim->token();
        until = now + claim->ttl();
        co_return colock::create_outcome::granted(0);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        if (!holds(*claim))
            co_return colock::release_outcome{colock::release_status::not_held};
        store_->erase(claim->key());
        co_return colock::release_outcome{};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        if (!holds(*claim))
            co_return colock::extend_outcome{colock::extend_status::not_held};
        (*store_)[claim->key()].second = colock::lease_clock::now() + ttl;
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        co_return colock::valid_outcome{holds(*claim)};
    }

private:
    bool holds(const colock::claim& claim) const
    {
        const auto found = store_->find(claim.key());
        return found != store_->end() && found->second.first == claim.token() &&
               colock::lease_clock::now() < found->second.second;
    }

    const std::shared_ptr<holders> store_;
};

//[ registration
const colock::contract::registration map_backend({
    .name = "map",
    .capabilities = {},
    .make_environment = colock::contract::in_real_time(
        [](asio::io_context& io) {
            return [&io, store = std::make_shared<holders>()] {
                return std::make_shared<map_adapter>(io.get_executor(), store);
            };
        },
        std::chrono::seconds(1)),
});
//]
