// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/adapter.hpp"

#include "quorum/list_merger.hpp"
#include "quorum/majority.hpp"
#include "quorum/node.hpp"
#include "quorum/node_claim.hpp"
#include "quorum/one_shot_event.hpp"
#include "quorum/round.hpp"
#include "quorum/tally.hpp"
#include "quorum/tickets.hpp"
#include "quorum/vote.hpp"
#include "util/cursor.hpp"
#include "util/jitter.hpp"
#include "util/strand.hpp"

#include <colock/observer.hpp>
#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::quorum {

namespace {

using std::chrono::milliseconds;

std::shared_ptr<round> current_round(const claim& claim) noexcept
{
    return std::static_pointer_cast<round>(claim.slot);
}

/// Returns the request for the claim on one node.
claim_request make_node_request(const claim& claim)
{
    return {.key = claim.key(),
        .mode = claim.mode(),
        .max_holders = 0,
        .ttl = claim.ttl(),
        .keeps_place = false,
        .owner = claim.shared_owner()};
}

/// The operations are coroutines on a strand, and the answers of the nodes are counted on it.
class quorum_adapter final : public awaitable_adapter
{
public:
    quorum_adapter(const asio::any_io_executor& executor, settings settings, std::size_t node_count)
        : awaitable_adapter(colock::detail::new_strand(executor)), settings_(std::move(settings)),
          majority_(majority_of(node_count))
    {
    }

    /// Takes the adapters of the nodes and forwards the events that they report.
    void attach_nodes(const std::vector<std::shared_ptr<adapter>>& nodes)
    {
        const std::weak_ptr<quorum_adapter> self = std::static_pointer_cast<quorum_adapter>(shared_from_this());
        for (const auto& each : nodes) {
            observers_.push_back(std::make_shared<node_observer>(self));
            each->attach(observers_.back());
            nodes_.push_back(std::make_unique<node>(*this, each, cancelled_closes_, settings_.operation_timeout,
                [this](std::uint64_t parts) { count_unproven(parts); }));
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
        return nodes_.size() - missing < majority_ ? first : nullptr;
    }

    /// Ends the closes that were started before this call, also those that have not begun yet.
    void cancel_close() noexcept override
    {
        ++cancelled_closes_;
        for (const auto& each : nodes_)
            each->backend().cancel_close();
        if (!closes_.exchange(false))
            return;
        try {
            if (const auto strand = executor()) {
                asio::post(strand, [this, self = shared_from_this()] {
                    for (const auto& each : nodes_)
                        each->end_closes();
                });
            }
        } catch (const std::bad_alloc&) {
            // Without memory, the close ends when it would have closed the nodes.
            closes_ = true;
        }
    }

private:
    asio::awaitable<create_outcome> do_create(claim_ptr claim) override
    {
        const auto current = usable_round(*claim);
        const auto answers = co_await ask_all<create_outcome>(*current, judge_create,
            [&](node_claim& each, auto counter) { each.create(claim->operation_start(), {}, std::move(counter)); });
        if (answers.decision == verdict::yes)
            co_return create_outcome::granted(0);
        // Grants of a minority would delay all other attempts, including later ones of this claim.
        current->retire();
        auto outcome = answers.decision == verdict::no
                           ? create_outcome::busy(answers.retry_after, answers.holder, answers.holder_host)
                           : create_outcome::failed(answers.failure());
        const auto max_delay = random_poll_delay();
        if (outcome.retry_after == outcome.retry_after.zero() || outcome.retry_after > max_delay)
            outcome.retry_after = max_delay;
        co_return outcome;
    }

    /// Joins the parts of all nodes. A node that has not answered the create yet is waited for, at most until its
    /// `operation_timeout`.
    asio::awaitable<export_outcome> do_export(claim_ptr claim) override
    {
        const auto current = current_round(*claim);
        if (!current || current->is_over)
            co_return export_outcome{};
        const auto& claims = current->node_claims;
        const auto parts = co_await await_all<std::string>(
            awaited_, claims.size(), [&](std::size_t i, auto done) { claims[i]->export_ticket(std::move(done)); });
        co_return export_outcome{.ticket = join_tickets(parts)};
    }

    asio::awaitable<create_outcome> do_adopt(std::string ticket, claim_ptr claim) override
    {
        auto parts = split_tickets(ticket, nodes_.size());
        if (!parts)
            co_return create_outcome::busy();
        const auto current = usable_round(*claim);
        const auto answers = co_await adopt(*current, std::move(*parts));
        if (answers.decision == verdict::yes)
            co_return create_outcome::granted(0);
        auto failure = answers.decision == verdict::failed ? answers.failure() : nullptr;
        // Some nodes may have adopted their parts, or may do so later. They count in the next attempt.
        if (failure && failure->code == errc::unavailable && answers.no + answers.unavailable < answers.nodes)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        if (!failure || (failure->code != errc::unavailable && failure->code != errc::outcome_unknown))
            current->retire();
        co_return failure ? create_outcome::failed(std::move(failure)) : create_outcome::busy();
    }

    /// Settles all node claims, because a node whose reply is missing may have granted its claim. Completes when a
    /// majority has answered, and continues with the others in the background. Without a majority the core tries again.
    asio::awaitable<release_outcome> do_release(claim_ptr claim, release_guarantee) override
    {
        const auto current = current_round(*claim);
        if (!current)
            co_return release_outcome{release_status::not_held, nullptr};
        current->is_over = true;
        const auto answers = co_await ask_all<release_outcome>(
            *current, judge_release, [](node_claim& each, auto counter) { each.abandon(std::move(counter)); });
        if (answers.decision == verdict::failed)
            co_return release_outcome{release_status::failed, answers.failure()};
        current->retire();
        // Reset, because only a retry after a failure may count earlier releases.
        claim->slot.reset();
        co_return release_outcome{
            answers.decision == verdict::yes ? release_status::released : release_status::not_held, nullptr};
    }

    asio::awaitable<extend_outcome> do_extend(claim_ptr claim, milliseconds ttl) override
    {
        const auto current = current_round(*claim);
        if (!current || current->is_over)
            co_return extend_outcome{extend_status::not_held, nullptr};
        const auto answers = co_await ask_all<extend_answer>(*current, judge_held,
            [&](node_claim& each, auto counter) { each.extend(claim->operation_start(), ttl, std::move(counter)); });
        if (answers.decision == verdict::failed)
            co_return extend_outcome{extend_status::failed, answers.failure()};
        if (answers.decision == verdict::no)
            co_return extend_outcome{extend_status::not_held, nullptr};
        // Only a late request to one of the nodes that have extended the lock can shorten it.
        claim->clear_late_ttl();
        claim->lower_late_ttl(answers.late_ttl);
        co_return extend_outcome{extend_status::extended, nullptr};
    }

    asio::awaitable<valid_outcome> do_is_valid(claim_ptr claim) override
    {
        const auto current = current_round(*claim);
        if (!current || current->is_over)
            co_return valid_outcome{false, nullptr};
        const auto answers = co_await ask_all<valid_outcome>(
            *current, judge_held, [](node_claim& each, auto counter) { each.is_valid(std::move(counter)); });
        co_return valid_outcome{
            answers.decision == verdict::yes, answers.decision == verdict::failed ? answers.failure() : nullptr};
    }

    /// Returns a single page, because a majority is known only after all pages of all nodes. A purge has nothing to
    /// remove, because exclusive locks expire by themselves.
    asio::awaitable<list_outcome> do_listing(listing_request request) override
    {
        if (!request.cursor.empty())
            co_return list_outcome{.error = colock::detail::not_a_cursor(traits().name)};
        if (request.action == listing_action::purge)
            co_return list_outcome{};
        std::vector<list_outcome> lists(nodes_.size());
        std::vector<std::size_t> unfinished;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            unfinished.push_back(i);
        while (!unfinished.empty()) {
            auto pages = co_await await_all<list_outcome>(awaited_, unfinished.size(), [&](std::size_t i, auto done) {
                auto& node = *nodes_[unfinished[i]];
                request.cursor = lists[unfinished[i]].next;
                node.backend().start_listing(request, node.on_strand(std::move(done)));
            });
            for (std::size_t i = 0; i < pages.size(); ++i) {
                auto& list = lists[unfinished[i]];
                std::ranges::move(pages[i].locks, std::back_inserter(list.locks));
                list.next = std::move(pages[i].next);
                list.error = std::move(pages[i].error);
            }
            std::erase_if(unfinished, [&](std::size_t i) { return lists[i].error || lists[i].next.empty(); });
        }
        list_merger merger(nodes_.size());
        for (auto& each : lists)
            merger.add(std::move(each));
        co_return std::move(merger).result();
    }

    /// Called inside `start_close`. So a later `cancel_close` ends this close, even if its coroutine has not begun.
    asio::awaitable<void> do_close(lease_clock::duration deadline) override
    {
        closes_ = true;
        return close_nodes(deadline, cancelled_closes_);
    }
    /// \param number the number of cancelled closes when this close was started
    asio::awaitable<void> close_nodes(lease_clock::duration deadline, std::uint64_t number)
    {
        if (number == cancelled_closes_) {
            static_cast<void>(co_await await_all<close_outcome>(awaited_, nodes_.size(),
                [&](std::size_t i, auto done) { nodes_[i]->close(deadline, number, std::move(done)); }));
        }
    }

    void context_shutdown() noexcept override
    {
        for (const auto& each : nodes_)
            each->drop_all();
        one_shot_event::destroy_waiting(awaited_);
    }

    /// Forwards the events of one node.
    class node_observer final : public observer
    {
    public:
        explicit node_observer(std::weak_ptr<quorum_adapter> target) : target_(std::move(target)) {}
        void ready(std::string_view) noexcept override { reconnected({}); }
        void unreachable(std::string_view, const error_code& error, std::string_view address,
            std::string_view detail) noexcept override
        {
            const auto to = target_.lock();
            if (!to)
                return;
            to->contact().report_unreachable(error, address, detail);
            to->on_node_lost(is_reached_, error, true);
        }
        void suspended(std::string_view, const error_code& error) noexcept override
        {
            if (const auto to = target_.lock())
                to->on_node_lost(is_reached_, error, false);
        }
        void reconnected(std::string_view) noexcept override
        {
            if (const auto to = target_.lock())
                to->on_node_reached(is_reached_);
        }
        void warning(std::string_view, std::string_view message) noexcept override
        {
            if (const auto to = target_.lock())
                to->contact().warn(message);
        }

    private:
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
    void on_node_lost(bool& is_reached, const error_code& error, bool is_up_due) noexcept
    {
        {
            const std::lock_guard guard(mutex_);
            if (std::exchange(is_reached, false))
                --reached_count_;
            last_loss_ = error;
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
            const bool must_report = is_up ? is_up_due_ && is_node_back : is_up_reported_;
            if (!must_report)
                break;
            is_up_reported_ = is_up;
            is_up_due_ = !is_up;
            const auto error = last_loss_;
            guard.unlock();
            if (is_up)
                contact().set_up(first_connected_at_);
            else
                contact().set_down(error);
            guard.lock();
        }
        is_reporting_ = false;
    }

    /// Returns the round of the claim if it may still be used, otherwise a new one. Node claims that are being released
    /// are never used again.
    [[nodiscard]] std::shared_ptr<round> usable_round(claim& quorum_claim)
    {
        auto found = current_round(quorum_claim);
        if (found && !found->is_over)
            return found;
        if (found)
            found->retire();
        auto new_round = std::make_shared<round>(awaited_);
        for (const auto& each : nodes_) {
            const claim_ptr part(new claim(make_node_request(quorum_claim)));
            // All tokens are generated before the first request is sent, because a later one may fail for lack of
            // randomness.
            static_cast<void>(part->token());
            new_round->node_claims.push_back(std::make_shared<node_claim>(each->shared(), part));
        }
        quorum_claim.slot = new_round;
        // Late requests of an earlier round have other tokens, so they cannot change this round.
        quorum_claim.clear_late_ttl();
        return new_round;
    }

    /// The delay is random, so that two clients that have each won a minority do not collide again and again.
    [[nodiscard]] lease_clock::duration random_poll_delay() const
    {
        return colock::detail::spread(settings_.poll_interval, 0.5);
    }

    const settings settings_;
    const std::size_t majority_;
    /// Events that suspended operations wait for. Belongs to the strand.
    one_shot_event::list awaited_;
    /// False if no close was started since the last call of `cancel_close`.
    std::atomic<bool> closes_{false};
    std::atomic<std::uint64_t> cancelled_closes_{0};
    std::vector<std::unique_ptr<node>> nodes_;
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
    asio::any_io_executor executor, const std::vector<std::shared_ptr<adapter>>& nodes, settings settings)
{
    auto result = std::make_shared<quorum_adapter>(executor, std::move(settings), nodes.size());
    result->attach_nodes(nodes);
    return result;
}

} // namespace colock::inline v0::quorum
