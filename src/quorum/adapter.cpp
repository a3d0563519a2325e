// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/adapter.hpp"

#include "quorum/adoption.hpp"
#include "quorum/decisions.hpp"
#include "quorum/list_merger.hpp"
#include "quorum/majority.hpp"
#include "quorum/node.hpp"
#include "quorum/node_claim.hpp"
#include "quorum/tickets.hpp"
#include "quorum/vote.hpp"
#include "util/cursor.hpp"
#include "util/jitter.hpp"

#include <colock/observer.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::quorum {

namespace {

using std::chrono::milliseconds;

/// One attempt to acquire the lock: a claim on each node. Stored in the slot of the claim that it serves.
struct round
{
    std::vector<std::shared_ptr<node_claim>> node_claims{};
    /// True once the round was refused or released, or is about to be. Then the next attempt uses a new round.
    std::atomic<bool> is_over{false};

    /// Ends the use of the round. The node claims are released in the background.
    void retire()
    {
        is_over = true;
        for (const auto& each : node_claims)
            each->abandon_in_background();
    }
};

std::shared_ptr<round> round_of(const claim& of) noexcept
{
    return std::static_pointer_cast<round>(of.slot);
}

/// Adds the locks that a node lists, page by page.
void add_pages(
    std::shared_ptr<adapter> node, listing_request request, list_outcome known, std::shared_ptr<list_merger> all)
{
    auto& backend = *node;
    request.cursor = std::exchange(known.next, {});
    backend.start_listing(request,
        [node = std::move(node), request, known = std::move(known), all = std::move(all)](list_outcome page) mutable {
            page.locks.insert(page.locks.begin(), std::make_move_iterator(known.locks.begin()),
                std::make_move_iterator(known.locks.end()));
            if (page.error || page.next.empty())
                all->add(std::move(page));
            else
                add_pages(std::move(node), std::move(request), std::move(page), std::move(all));
        });
}

/// Returns the request for the claim on one node.
claim_request make_node_request(const claim& of)
{
    return {.key = of.key(),
        .mode = of.mode(),
        .max_holders = 0,
        .ttl = of.ttl(),
        .keeps_place = false,
        .owner = of.shared_owner()};
}

/// Returns a completion that counts the answer of a node in `votes`.
template <class Outcome>
completion<Outcome> make_counter(const std::shared_ptr<vote<Outcome>>& votes, void (*note)(vote_count&, const Outcome&))
{
    return
        [votes, note](const Outcome& outcome) { votes->count([&](vote_count& counted) { note(counted, outcome); }); };
}

class quorum_adapter final : public adapter
{
public:
    quorum_adapter(asio::any_io_executor executor, settings chosen, std::size_t node_count)
        : adapter(std::move(executor)), settings_(std::move(chosen)), majority_(majority_of(node_count))
    {
    }

    /// Takes the adapters of the nodes and forwards the events that they report.
    void attach_nodes(const std::vector<std::shared_ptr<adapter>>& nodes)
    {
        const std::weak_ptr<quorum_adapter> self = std::static_pointer_cast<quorum_adapter>(shared_from_this());
        const auto on_given_up = [self](std::uint64_t parts) {
            if (const auto to = self.lock())
                to->count_unproven(parts);
        };
        for (const auto& each : nodes) {
            observers_.push_back(std::make_shared<node_observer>(self));
            each->attach(observers_.back());
            nodes_.push_back(node::make(each, settings_.operation_timeout, on_given_up));
        }
    }

    /// The quorum requires a ttl: a part of a lock that remains on a disconnected node would otherwise exist forever.
    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = settings_.name, .capabilities = {.list = true, .tickets = true}};
    }

    /// Two majorities may share only one node. If the clock of that node gets ahead, both majorities can grant the
    /// lock. Therefore the largest lead of all nodes counts.
    [[nodiscard]] milliseconds max_clock_lead(milliseconds ttl) const noexcept override
    {
        milliseconds largest{0};
        for (const auto& each : nodes_)
            largest = std::max(largest, each->backend().max_clock_lead(ttl));
        return largest;
    }

    /// Returns the problem of the first unreachable node if too few nodes are left for a majority, because no operation
    /// can succeed then. Otherwise null.
    [[nodiscard]] failure_ptr connection_failure() const override
    {
        failure_ptr first;
        std::size_t missing = 0;
        for (const auto& each : nodes_) {
            auto one = each->backend().connection_failure();
            if (one && ++missing == 1)
                first = std::move(one);
        }
        return nodes_.size() - missing < majority_of(nodes_.size()) ? first : nullptr;
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        const auto current = round_for(*claim);
        auto on_decided = [current, max_delay = random_poll_delay(), done = std::move(done)](
                              create_outcome outcome) mutable {
            if (outcome.status != create_status::granted) {
                // Grants of a minority would delay all other attempts, including later ones of this claim.
                current->retire();
                if (outcome.retry_after == outcome.retry_after.zero() || outcome.retry_after > max_delay)
                    outcome.retry_after = max_delay;
            }
            done(std::move(outcome));
        };
        const auto votes = std::make_shared<vote<create_outcome>>(nodes_.size(), decide_create, std::move(on_decided));
        for (const auto& each : current->node_claims)
            each->create(claim->operation_start(), make_counter(votes, count_create));
    }

    void start_export(claim_ptr held, completion<export_outcome> done) override
    {
        if (const auto current = round_of(*held); current && !current->is_over)
            std::make_shared<ticket_export>(current->node_claims, std::move(done))->start();
        else
            done({});
    }

    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        auto parts = split_tickets(ticket, nodes_.size());
        if (!parts) {
            done(create_outcome::busy());
            return;
        }
        const auto current = round_for(*claim);
        auto on_decided = [current, done = std::move(done)](create_outcome outcome) mutable {
            const bool keeps_round = outcome.status == create_status::granted ||
                                     (outcome.error && (outcome.error->code == errc::unavailable ||
                                                           outcome.error->code == errc::outcome_unknown));
            if (!keeps_round)
                current->retire();
            done(std::move(outcome));
        };
        std::make_shared<adoption>(current->node_claims, std::move(*parts), std::move(on_decided))->start();
    }

    /// Settles all node claims, because a node whose reply is missing may have granted its claim. Completes when a
    /// majority has answered, and continues with the others in the background. Without a majority the core tries again.
    void start_release(claim_ptr claim, release_guarantee, completion<release_outcome> done) override
    {
        const auto ending = round_of(*claim);
        if (!ending) {
            done({release_status::not_held, nullptr});
            return;
        }
        ending->is_over = true;
        auto on_decided = [ending, claim, done = std::move(done)](release_outcome outcome) mutable {
            if (outcome.status != release_status::failed) {
                ending->retire();
                // Only a repetition after a failure counts what was released before.
                claim->slot.reset();
            }
            done(std::move(outcome));
        };
        const auto votes =
            std::make_shared<vote<release_outcome>>(nodes_.size(), decide_release, std::move(on_decided));
        for (const auto& each : ending->node_claims)
            each->abandon(make_counter(votes, count_release));
    }

    void start_extend(claim_ptr claim, milliseconds ttl, completion<extend_outcome> done) override
    {
        const auto held = round_of(*claim);
        if (!held || held->is_over) {
            done({extend_status::not_held, nullptr});
            return;
        }
        auto on_decided = [claim, done = std::move(done)](extension answer) mutable {
            if (answer.outcome.status == extend_status::extended) {
                // Only a late request to one of the nodes that have extended the lock can shorten it.
                claim->clear_late_ttl();
                claim->lower_late_ttl(answer.late_ttl);
            }
            done(std::move(answer.outcome));
        };
        const auto votes = std::make_shared<vote<extension>>(nodes_.size(), decide_extend, std::move(on_decided));
        for (const auto& each : held->node_claims)
            each->extend(claim->operation_start(), ttl, make_counter(votes, count_extend));
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        const auto held = round_of(*claim);
        if (!held || held->is_over) {
            done({false, nullptr});
            return;
        }
        const auto votes = std::make_shared<vote<valid_outcome>>(nodes_.size(), decide_valid, std::move(done));
        for (const auto& each : held->node_claims)
            each->is_valid(make_counter(votes, count_valid));
    }

    /// Returns a single page, because a majority is known only after all pages of all nodes. A purge has nothing to
    /// remove, because exclusive locks expire by themselves.
    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        if (request.action == listing_action::purge || !request.cursor.empty()) {
            done({.error = request.cursor.empty() ? nullptr : colock::detail::not_a_cursor(traits().name)});
            return;
        }
        const auto all = std::make_shared<list_merger>(nodes_.size(), std::move(done));
        for (const auto& each : nodes_)
            add_pages(each->backend().shared_from_this(), request, {}, all);
    }

    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override
    {
        const auto missing = std::make_shared<std::atomic<std::size_t>>(nodes_.size());
        const auto last = std::make_shared<completion<close_outcome>>(std::move(done));
        for (const auto& each : nodes_) {
            each->close(deadline, [missing, last](close_outcome) {
                if (missing->fetch_sub(1) == 1)
                    (*last)(close_outcome{});
            });
        }
    }
    void cancel_close() noexcept override
    {
        for (const auto& each : nodes_)
            each->cancel_close();
    }

private:
    /// Forwards the events of one node.
    class node_observer final : public observer
    {
    public:
        explicit node_observer(std::weak_ptr<quorum_adapter> target) : target_(std::move(target)) {}
        void ready(std::string_view) noexcept override { on_reached(); }
        void unreachable(std::string_view, const error_code& why, std::string_view address,
            std::string_view detail) noexcept override
        {
            const auto to = target_.lock();
            if (!to)
                return;
            to->contact().report_unreachable(why, address, detail);
            to->on_node_lost(is_reached_, why, true);
        }
        void suspended(std::string_view, const error_code& why) noexcept override
        {
            if (const auto to = target_.lock())
                to->on_node_lost(is_reached_, why, false);
        }
        void reconnected(std::string_view) noexcept override { on_reached(); }
        void warning(std::string_view, std::string_view message) noexcept override
        {
            if (const auto to = target_.lock())
                to->contact().warn(message);
        }

    private:
        void on_reached() noexcept
        {
            if (const auto to = target_.lock())
                to->on_node_reached(is_reached_);
        }

        const std::weak_ptr<quorum_adapter> target_;
        /// The mutex of the adapter protects this. A node that connects again because it was idle is still reached.
        bool is_reached_ = false;
    };

    void on_node_reached(bool& is_reached) noexcept
    {
        {
            const std::lock_guard guard(mutex_);
            if (first_connected_at_ == lease_clock::time_point())
                first_connected_at_ = lease_clock::now();
            if (!std::exchange(is_reached, true))
                ++reached_count_;
            is_node_back_ = true;
        }
        report_majority();
    }
    /// \param is_up_due whether observers were notified, so that they must be notified of the end of the loss, too
    void on_node_lost(bool& is_reached, const error_code& why, bool is_up_due) noexcept
    {
        {
            const std::lock_guard guard(mutex_);
            if (std::exchange(is_reached, false))
                --reached_count_;
            last_loss_ = why;
            is_up_due_ |= is_up_due;
        }
        report_majority();
    }
    /// Reports that a majority can be reached, the first time, and after a node or the majority was reported as
    /// unreachable. Reports once that a majority was reachable and is not any more.
    void report_majority() noexcept
    {
        std::unique_lock guard(mutex_);
        // A thread that is reporting checks again afterwards, so that the last report is about the last state.
        if (std::exchange(is_reporting_, true))
            return;
        for (;;) {
            const bool is_up = reached_count_ >= majority_;
            const bool is_node_back = std::exchange(is_node_back_, false);
            if (is_up ? !is_up_due_ || !is_node_back : !is_up_reported_)
                break;
            is_up_reported_ = is_up;
            is_up_due_ = !is_up;
            const auto why = last_loss_;
            guard.unlock();
            if (is_up)
                contact().set_up(first_connected_at_);
            else
                contact().set_down(why);
            guard.lock();
        }
        is_reporting_ = false;
    }

    /// Returns the round of the claim if it may still be used, otherwise a new one. Node claims that are being released
    /// are never used again.
    std::shared_ptr<round> round_for(claim& wanted)
    {
        auto found = round_of(wanted);
        if (found && !found->is_over)
            return found;
        if (found)
            found->retire();
        auto fresh = std::make_shared<round>();
        for (const auto& each : nodes_) {
            const claim_ptr part(new claim(make_node_request(wanted)));
            // All tokens are generated before the first request is sent, because a later one may fail for lack of
            // randomness.
            static_cast<void>(part->token());
            fresh->node_claims.push_back(std::make_shared<node_claim>(each, part));
        }
        wanted.slot = fresh;
        // Late requests of an earlier round have other tokens, so they cannot change this round.
        wanted.clear_late_ttl();
        return fresh;
    }

    /// The delay is random, so that two clients that have each won a minority do not collide again and again.
    [[nodiscard]] lease_clock::duration random_poll_delay() const
    {
        return colock::detail::spread(settings_.poll_interval, 0.5);
    }

    const settings settings_;
    const std::size_t majority_;
    std::vector<std::shared_ptr<node>> nodes_;
    std::vector<std::shared_ptr<node_observer>> observers_;

    /// Protects the members below, and is not held while something is reported.
    std::mutex mutex_;
    /// Number of nodes that were reached, and not lost since.
    std::size_t reached_count_ = 0;
    /// A node was reached since the last check.
    bool is_node_back_ = false;
    /// The next majority is reported to observers.
    bool is_up_due_ = true;
    bool is_up_reported_ = false;
    bool is_reporting_ = false;
    error_code last_loss_;
    /// No request was sent to any node before this time. Set once, before the first report.
    lease_clock::time_point first_connected_at_{};
};

} // namespace

std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, const std::vector<std::shared_ptr<adapter>>& nodes, settings chosen)
{
    auto made = std::make_shared<quorum_adapter>(std::move(executor), std::move(chosen), nodes.size());
    made->attach_nodes(nodes);
    return made;
}

} // namespace colock::inline v0::quorum
