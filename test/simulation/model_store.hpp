// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace colock::simulation {

using time_point = lease_clock::time_point;
using std::chrono::milliseconds;

/// The data of a claim at the time at which a request was sent.
struct claim_data
{
    explicit claim_data(const claim& of)
        : key(of.key()), token(of.token()), mode(of.mode()), max_holders(of.max_holders()), ttl(of.ttl()),
          keeps_place(of.keeps_place()), owner(of.shared_owner())
    {
    }

    std::string key;
    colock::token token;
    lock_mode mode;
    std::size_t max_holders;
    milliseconds ttl;
    bool keeps_place;
    std::shared_ptr<const owner_data> owner;
};

/// The data of a model server, and what its requests do. Each function takes the time of the server's clock.
///
/// Requests may arrive in any order and late. A token that was abandoned is refused forever. A late release, extension
/// or create of another token has its effect, as on a real server.
class model_store
{
public:
    explicit model_store(capabilities given) : can_(given) {}

    [[nodiscard]] create_outcome create(const claim_data& wanted, time_point now);
    [[nodiscard]] create_all_outcome create_all(const std::vector<claim_data>& wanted, time_point now);
    [[nodiscard]] release_outcome release(const claim_data& held, time_point now);
    [[nodiscard]] release_outcome abandon(const claim_data& abandoned, time_point now);
    [[nodiscard]] extend_outcome extend(const claim_data& held, milliseconds ttl, time_point now);
    [[nodiscard]] bool is_valid(const std::string& key, const token& held, time_point now) const;
    [[nodiscard]] hand_over_outcome hand_over(
        const claim_data& held, bool is_abandoned, const claim_data& next, time_point now);
    [[nodiscard]] create_outcome adopt(const std::string& ticket, const claim_data& wanted, time_point now);
    [[nodiscard]] group_outcome extend_group(const std::string& id, milliseconds ttl, time_point now);
    /// Returns the tokens of the holders that match.
    [[nodiscard]] std::vector<token> find(const filter& which, time_point now) const;
    /// Removes the holders with these tokens, by force.
    [[nodiscard]] std::vector<lock_status> remove(const std::vector<token>& found, time_point now);
    [[nodiscard]] list_outcome list(const filter& which, const std::string& cursor, time_point now) const;
    [[nodiscard]] list_outcome purge(std::size_t limit, time_point now);

    /// Loses all locks and places, as a restart without data does. Fences continue, as they do on a server whose
    /// counter is raised by each new connection. Tokens that were abandoned are still refused.
    void lose_data(time_point now);

    /// Calls `notify` once, as soon as the claim could be granted or an expiry has moved nearer.
    /// \param id number of the wait; the same wait may be sent again
    void watch(const claim_data& waiting, std::uint64_t id, time_point now, std::function<void()> notify);

    /// Whether no claim holds a lock or has a place in a queue.
    [[nodiscard]] bool is_empty(time_point now) const;
    [[nodiscard]] bool has_holders(const std::string& key, time_point now) const;
    /// If set, called with each change, for a timeline.
    std::function<void(const std::string&)> trace;
    /// Names the holders of each key and the claims in its queue, for a timeline.
    [[nodiscard]] std::string describe(time_point now) const;
    /// When a holder was removed by somebody else, by the clock of the server.
    [[nodiscard]] std::optional<time_point> taken_at(const token& held) const
    {
        const auto found = taken_.find(held.bytes());
        return found == taken_.end() ? std::nullopt : std::optional(found->second);
    }

private:
    struct holder
    {
        claim_data data;
        time_point expires;
        time_point created;
        time_point renewed;
        std::uint64_t fence;
    };
    struct place
    {
        claim_data data;
        /// A create or a watch renews the place.
        time_point expires;
    };
    struct watcher
    {
        claim_data data;
        std::uint64_t id;
        std::function<void()> notify;
    };
    struct entry
    {
        std::vector<holder> holders;
        std::vector<place> queue;
        std::vector<watcher> watchers;
    };

    [[nodiscard]] bool is_live(const holder& each, time_point now) const { return !can_.expires || now < each.expires; }
    [[nodiscard]] const holder* find_conflict(const entry& at, const claim_data& wanted, time_point now) const;
    [[nodiscard]] bool must_queue(const entry& at, const claim_data& wanted, time_point now) const;
    [[nodiscard]] create_outcome busy(const holder* conflict, time_point now) const;
    [[nodiscard]] lock_status status(const holder& of, time_point now) const;
    bool remove(const claim_data& removed, time_point now);
    void report(const char* change, const std::string& key, const token& of) const
    {
        if (trace)
            trace(std::string("server: ") + change + " " + key + " " + of.hex().substr(0, 6));
    }
    void notify_watchers(entry& at, time_point now, bool all = false);
    template <class Condition>
    std::vector<lock_status> take_if(Condition condition, time_point now, bool by_force);

    const capabilities can_;
    std::map<std::string, entry> entries_;
    std::uint64_t last_fence_ = 0;
    std::set<token::bytes_type> abandoned_;
    std::map<token::bytes_type, time_point> taken_;
};

} // namespace colock::simulation
