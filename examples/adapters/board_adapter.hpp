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
// The server: a board where each lock is a note. It notifies the watchers of a note when the note is removed, or when
// its expiry moves to an earlier time. All clients of the board run on its strand.
struct board
{
    explicit board(const asio::any_io_executor& executor) : strand(asio::make_strand(executor)) {}

    struct note
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
    void take_off(std::map<std::string, note>::iterator taken)
    {
        notify_watchers(taken->first);
        notes.erase(taken);
    }

    const asio::any_io_executor strand;
    std::map<std::string, note> notes{};
    std::multimap<std::string, colock::lease_timer*> watchers{};
    std::uint64_t last_fence = 0;
};
//]

//[ adapter
class board_adapter : public colock::awaitable_adapter
{
public:
    explicit board_adapter(std::shared_ptr<board> server) : awaitable_adapter(server->strand), board_(std::move(server))
    {
    }

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "board",
            .capabilities = {.no_ttl = true, .fence = true, .list = true, .events = true, .several = true}};
    }

protected:
    //]
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return put_up(*claim);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        co_await round_trip();
        co_return take_off(*claim);
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        co_await round_trip();
        const auto ours = find_ours(*claim);
        if (ours == board_->notes.end())
            co_return colock::extend_outcome{colock::extend_status::not_held};
        const auto before = std::exchange(ours->second.expires, expiry_of(ttl));
        // Waiters rely on the expiry in their busy answer, so they are notified of an earlier expiry.
        if (ours->second.expires < before)
            board_->notify_watchers(claim->key());
        ours->second.status.renewed = std::chrono::system_clock::now();
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return colock::valid_outcome{find_ours(*claim) != board_->notes.end()};
    }

    //[ wait
    // Registers the watch before it checks the lock, so that a removal in between is not missed. An expiry sends no
    // notification. It needs none, because the core checks again at the time that the busy answer named.
    asio::awaitable<void> do_wait(colock::claim_ptr claim, colock::lease_clock::time_point until) override
    {
        colock::lease_timer wake_up(executor(), until);
        const watch_guard watched(*board_, claim->key(), wake_up);
        if (is_taken(claim->key()))
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
        outcome.released = take_off(*held);
        outcome.created = put_up(*next);
        co_return outcome;
    }
    //]

    //[ create_all
    // Nothing runs on the server between the check and the grants, so that all locks are granted or none.
    asio::awaitable<colock::create_all_outcome> do_create_all(std::vector<colock::claim_ptr> claims) override
    {
        co_await round_trip();
        for (std::size_t i = 0; i < claims.size(); ++i) {
            if (is_taken(claims[i]->key()) && find_ours(*claims[i]) == board_->notes.end())
                co_return colock::create_all_outcome{.which = i, .why = put_up(*claims[i])};
        }
        colock::create_all_outcome outcome{.status = colock::create_status::granted};
        for (const auto& each : claims)
            outcome.fences.push_back(put_up(*each).fence);
        co_return outcome;
    }
    //]

    //[ list
    // In pages: the cursor is the last key that was checked. A purge finds the expired notes, and a list the others.
    asio::awaitable<colock::list_outcome> do_listing(colock::listing_request request) override
    {
        co_await round_trip();
        const auto& key = request.filter.key;
        const bool is_purge = request.action == colock::listing_action::purge;
        auto next = key ? board_->notes.find(*key) : board_->notes.upper_bound(request.cursor);
        colock::list_outcome page;
        for (auto left = key ? 1 : notes_per_page; next != board_->notes.end() && left > 0; --left) {
            if (page.locks.size() == request.limit)
                break;
            const auto note = next++;
            request.cursor = note->first;
            if (is_taken(note->first) == is_purge)
                continue;
            page.locks.push_back(status_of(note->second));
            if (request.action != colock::listing_action::list)
                board_->take_off(note);
        }
        if (!key && next != board_->notes.end())
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
    static constexpr int notes_per_page = 16;

    struct watch_guard
    {
        watch_guard(board& watched, std::string key, colock::lease_timer& wake_up)
            : server(watched), position(watched.watchers.emplace(std::move(key), &wake_up))
        {
        }
        ~watch_guard() { server.watchers.erase(position); }

        board& server;
        const std::multimap<std::string, colock::lease_timer*>::iterator position;
    };

    asio::awaitable<void> round_trip()
    {
        colock::lease_timer passed(executor(), std::chrono::milliseconds(1));
        co_await passed.async_wait(asio::deferred);
    }
    bool is_taken(const std::string& key) const
    {
        const auto found = board_->notes.find(key);
        return found != board_->notes.end() && colock::lease_clock::now() < found->second.expires;
    }
    std::map<std::string, board::note>::iterator find_ours(const colock::claim& claim) const
    {
        const auto found = board_->notes.find(claim.key());
        const bool is_ours = is_taken(claim.key()) && found->second.token == claim.token();
        return is_ours ? found : board_->notes.end();
    }
    colock::create_outcome put_up(const colock::claim& claim)
    {
        const bool is_ours = find_ours(claim) != board_->notes.end();
        auto& note = board_->notes[claim.key()];
        if (!is_ours && is_taken(claim.key())) {
            const bool never_expires = note.expires == colock::lease_clock::time_point::max();
            const auto left =
                never_expires ? colock::lease_clock::duration{} : note.expires - colock::lease_clock::now();
            return colock::create_outcome::busy(left, note.status.owner, note.status.host);
        }
        const auto now = std::chrono::system_clock::now();
        if (!is_ours) {
            const auto& owner = claim.owner();
            note.status = {.key = claim.key(),
                .group = owner.group,
                .owner = owner.owner,
                .host = owner.host,
                .comment = owner.comment,
                .created = now,
                .fence = ++board_->last_fence};
        }
        note.token = claim.token();
        note.expires = expiry_of(claim.ttl());
        note.status.renewed = now;
        return colock::create_outcome::granted(note.status.fence);
    }
    colock::release_outcome take_off(const colock::claim& claim)
    {
        const auto ours = find_ours(claim);
        if (ours == board_->notes.end())
            return {colock::release_status::not_held};
        board_->take_off(ours);
        return {};
    }
    static colock::lock_status status_of(const board::note& note)
    {
        auto status = note.status;
        const auto left = note.expires - colock::lease_clock::now();
        if (note.expires != colock::lease_clock::time_point::max())
            status.remaining = std::chrono::duration_cast<std::chrono::milliseconds>(std::max(left, left.zero()));
        return status;
    }

    const std::shared_ptr<board> board_;
};
