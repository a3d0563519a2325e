// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;

//[ server
// A simulated server. It notifies the watchers of a key when the lock of the key is removed, or when the expiry of the
// lock moves to an earlier time. All clients of the server run on its strand.
struct simulated_server
{
    explicit simulated_server(const asio::any_io_executor& executor) : strand(asio::make_strand(executor)) {}

    struct stored_lock
    {
        colock::token token{};
        colock::lease_clock::time_point expires{};
        colock::lock_status status{};
    };
    void notify_watchers(const std::string& key)
    {
        const auto [first, last] = watchers.equal_range(key);
        for (auto watcher = first; watcher != last; ++watcher)
            watcher->second->cancel();
    }
    void remove(std::map<std::string, stored_lock>::iterator position)
    {
        notify_watchers(position->first);
        locks.erase(position);
    }

    const asio::any_io_executor strand;
    std::map<std::string, stored_lock> locks{};
    std::multimap<std::string, colock::lease_timer*> watchers{};
    std::uint64_t last_fence = 0;
};
//]

//[ adapter
class simulated_adapter : public colock::awaitable_adapter
{
public:
    explicit simulated_adapter(std::shared_ptr<simulated_server> server)
        : awaitable_adapter(server->strand), server_(std::move(server))
    {
    }

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "simulated",
            .capabilities = {.no_ttl = true, .fence = true, .list = true, .events = true, .create_all = true}};
    }

protected:
    //]
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return try_store(*claim);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        co_await round_trip();
        co_return remove(*claim);
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        co_await round_trip();
        const auto ours = find_lock_of(*claim);
        if (ours == server_->locks.end())
            co_return colock::extend_outcome{colock::extend_status::not_held};
        const auto before = std::exchange(ours->second.expires, expiry_of(ttl));
        // Waiters rely on the expiry in their busy answer, so they are notified of an earlier expiry.
        if (ours->second.expires < before)
            server_->notify_watchers(claim->key());
        ours->second.status.renewed = std::chrono::system_clock::now();
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return colock::valid_outcome{find_lock_of(*claim) != server_->locks.end()};
    }

    //[ wait
    // Registers the watch before it checks the lock, so that a removal in between is not missed. An expiry sends no
    // notification. It needs none, because the core checks again at the time that the busy answer named.
    asio::awaitable<void> do_wait(colock::claim_ptr claim, colock::lease_clock::time_point until) override
    {
        colock::lease_timer wake_up(executor(), until);
        const watch_guard watched(*server_, claim->key(), wake_up);
        if (is_locked(claim->key()))
            co_await wake_up.async_wait(asio::as_tuple(asio::deferred));
        // The guard `watched` unregisters the timer, whether it was notified or cancelled.
    }
    //]

    //[ hand_over
    // In one step: no other claim can be granted in between, and one round trip is saved.
    asio::awaitable<colock::hand_over_outcome> do_hand_over(colock::claim_ptr held, colock::claim_ptr next) override
    {
        co_await round_trip();
        colock::hand_over_outcome outcome;
        outcome.released = remove(*held);
        outcome.created = try_store(*next);
        co_return outcome;
    }
    //]

    //[ create_all
    // Nothing runs on the server between the check and the grants, so that all locks are granted or none.
    asio::awaitable<colock::create_all_outcome> do_create_all(std::vector<colock::claim_ptr> claims) override
    {
        co_await round_trip();
        for (std::size_t i = 0; i < claims.size(); ++i) {
            if (is_locked(claims[i]->key()) && find_lock_of(*claims[i]) == server_->locks.end())
                co_return colock::create_all_outcome{.which = i, .refusal = try_store(*claims[i])};
        }
        colock::create_all_outcome outcome{.status = colock::create_status::granted};
        for (const auto& each : claims)
            outcome.fences.push_back(try_store(*each).fence);
        co_return outcome;
    }
    //]

    //[ list
    // In pages: the cursor is the last key that was checked. A purge finds the expired locks, and a list the others.
    asio::awaitable<colock::list_outcome> do_listing(colock::listing_request request) override
    {
        co_await round_trip();
        const auto& key = request.filter.key;
        const bool is_purge = request.action == colock::listing_action::purge;
        auto next = key ? server_->locks.find(*key) : server_->locks.upper_bound(request.cursor);
        colock::list_outcome page;
        for (auto left = key ? 1 : locks_per_page; next != server_->locks.end() && left > 0; --left) {
            if (page.locks.size() == request.limit)
                break;
            const auto found = next++;
            request.cursor = found->first;
            if (is_locked(found->first) == is_purge)
                continue;
            page.locks.push_back(status_of(found->second));
            if (request.action != colock::listing_action::list)
                server_->remove(found);
        }
        if (!key && next != server_->locks.end())
            page.next = request.cursor;
        co_return page;
    }
    //]

    virtual colock::lease_clock::time_point expiry_of(std::chrono::milliseconds ttl) const
    {
        // A TTL of 0 means that the lock does not expire.
        return ttl.count() == 0 ? colock::lease_clock::time_point::max()
                                : colock::saturating_add(colock::lease_clock::now(), ttl);
    }

private:
    static constexpr int locks_per_page = 16;

    struct watch_guard
    {
        watch_guard(simulated_server& watched, std::string key, colock::lease_timer& wake_up)
            : server(watched), position(watched.watchers.emplace(std::move(key), &wake_up))
        {
        }
        ~watch_guard() { server.watchers.erase(position); }

        simulated_server& server;
        const std::multimap<std::string, colock::lease_timer*>::iterator position;
    };

    asio::awaitable<void> round_trip()
    {
        colock::lease_timer timer(executor(), std::chrono::milliseconds(1));
        co_await timer.async_wait(asio::deferred);
    }
    bool is_locked(const std::string& key) const
    {
        const auto found = server_->locks.find(key);
        return found != server_->locks.end() && colock::lease_clock::now() < found->second.expires;
    }
    std::map<std::string, simulated_server::stored_lock>::iterator find_lock_of(const colock::claim& claim) const
    {
        const auto found = server_->locks.find(claim.key());
        const bool is_ours = is_locked(claim.key()) && found->second.token == claim.token();
        return is_ours ? found : server_->locks.end();
    }
    colock::create_outcome try_store(const colock::claim& claim)
    {
        const bool is_ours = find_lock_of(claim) != server_->locks.end();
        auto& stored = server_->locks[claim.key()];
        if (!is_ours && is_locked(claim.key())) {
            const bool never_expires = stored.expires == colock::lease_clock::time_point::max();
            const auto left =
                never_expires ? colock::lease_clock::duration{} : stored.expires - colock::lease_clock::now();
            return colock::create_outcome::busy(left, stored.status.owner, stored.status.host);
        }
        const auto now = std::chrono::system_clock::now();
        if (!is_ours) {
            const auto& owner = claim.owner();
            stored.status = {.key = claim.key(),
                .group = owner.group,
                .owner = owner.owner,
                .host = owner.host,
                .comment = owner.comment,
                .created = now,
                .fence = ++server_->last_fence};
        }
        stored.token = claim.token();
        stored.expires = expiry_of(claim.ttl());
        stored.status.renewed = now;
        return colock::create_outcome::granted(stored.status.fence);
    }
    colock::release_outcome remove(const colock::claim& claim)
    {
        const auto ours = find_lock_of(claim);
        if (ours == server_->locks.end())
            return {colock::release_status::not_held};
        server_->remove(ours);
        return {};
    }
    static colock::lock_status status_of(const simulated_server::stored_lock& stored)
    {
        auto status = stored.status;
        const auto left = stored.expires - colock::lease_clock::now();
        if (stored.expires != colock::lease_clock::time_point::max())
            status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(std::max(left, left.zero()));
        return status;
    }

    const std::shared_ptr<simulated_server> server_;
};
