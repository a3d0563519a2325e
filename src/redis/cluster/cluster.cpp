// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/cluster.hpp"

#include "redis/cluster/node_command.hpp"
#include "redis/cluster/redirection.hpp"
#include "redis/failures.hpp"
#include "redis/operations/names.hpp"
#include "redis/pipeline/batch_size.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <string_view>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

using namespace std::chrono_literals;

constexpr unsigned max_redirections = 5;
/// Intervals at which the map is asked for: after redirections, and while operations cannot be sent.
constexpr lease_clock::duration refresh_interval = 1s;
constexpr lease_clock::duration blocked_interval = 100ms;
/// How long a connected node may take to send the map, before another node is asked.
constexpr lease_clock::duration answer_timeout = 500ms;
/// How long no map is taken from a node that has said that the cluster is down, if another node is connected.
constexpr lease_clock::duration isolation_time = 10s;

} // namespace

cluster::cluster(const std::shared_ptr<client>& seed)
    : seed_(seed), nodes_{seed}, timer_(std::make_unique<asio::steady_timer>(seed->strand()))
{
}

std::shared_ptr<cluster> cluster::make(const asio::any_io_executor& executor, const std::shared_ptr<client>& seed)
{
    auto result = std::make_shared<cluster>(seed);
    seed->join_cluster(result);
    join_context(executor, result);
    return result;
}

// Routing.

void cluster::submit(operation_ptr operation)
{
    auto& routed = static_cast<client_operation&>(*operation);
    if (routed.slot && !routed.is_pinned) {
        const auto to = client_for(*routed.slot);
        if (!to)
            return; // The context has shut down.
        routed.send_to(*to, false);
        to->enqueue(std::move(operation));
        return;
    }
    routed.owner().enqueue(std::move(operation));
}

std::shared_ptr<client> cluster::client_for(slot_number slot) const
{
    const std::lock_guard guard(mutex_);
    return nodes_.empty() ? nullptr : nodes_[owners_[slot]];
}

std::bitset<slot_count> cluster::slots_of(const client& master) const
{
    std::bitset<slot_count> found;
    const std::lock_guard guard(mutex_);
    for (std::size_t i = 0; i < slot_count && !nodes_.empty(); ++i)
        found[i] = nodes_[owners_[i]].get() == &master;
    return found;
}

bool cluster::follow_redirection(client_operation& operation)
{
    const auto& from = static_cast<client&>(operation.owner());
    auto& answer = operation.replies.back();
    auto found = parse_redirection(answer.text);
    if (!found) {
        // A master that is cut off from the others answers so, and does not know that it was replaced.
        const auto word = error_word(answer.text);
        if (word == "CLUSTERDOWN" || word == "NOREPLICAS") {
            isolated_ = &from;
            isolated_until_ = lease_clock::now() + isolation_time;
            refresh(refresh_interval);
        }
        return false;
    }
    std::shared_ptr<client> next;
    try {
        if (found->node.host.empty())
            found->node.host = from.node().host;
        const auto to = index_of(from.config().reachable(found->node));
        next = nodes()[to];
        if (!found->asks)
            assign({found->slot, found->slot}, to);
        refresh(refresh_interval);
    } catch (const std::bad_alloc&) {
        answer.text = "TRYAGAIN";
        return false;
    }
    if (++operation.redirections > max_redirections) {
        // A temporary error, so that the operation is tried again.
        answer.text = "TRYAGAIN the nodes refer to each other: " + answer.text;
        return false;
    }
    operation.send_to(*next, found->asks);
    next->enqueue(operation_ptr(&operation));
    return true;
}

void cluster::publish(std::string_view key) noexcept
{
    try {
        auto channel = lock_key(seed_->config(), key).text();
        // An ordinary channel is known to all nodes, so the message has reached its subscribers.
        if (const auto to = client_for(slot_of(channel)); to && to->has_sharded_channels())
            to->enqueue(make_node_command(
                *to, {"SPUBLISH", std::move(channel), ""}, 0ms, [](const reply&, const failure_ptr&) {}));
    } catch (...) {
        // Without memory, the waiters poll, or notice the release when the slot has moved.
    }
}

std::shared_ptr<operation_client> cluster::client_of(remote::connection_number connection)
{
    // The numbers of a node begin with 1.
    const auto index = (connection - 1) / remote::lost_requests::numbers_per_server;
    const std::lock_guard guard(mutex_);
    return index < nodes_.size() ? nodes_[index] : nullptr;
}

std::vector<std::shared_ptr<client>> cluster::nodes() const
{
    const std::lock_guard guard(mutex_);
    return nodes_;
}

cluster::node_index cluster::index_of(const endpoint& node)
{
    const auto known = nodes();
    const auto found = std::ranges::find_if(known, [&](const auto& each) { return each->node() == node; });
    if (found != known.end())
        return static_cast<node_index>(found - known.begin());
    auto added = seed_->make_for_node(node, known.size());
    const std::lock_guard guard(mutex_);
    if (closes_until_)
        added->close(*closes_until_ - lease_clock::now(), [](close_outcome) {});
    nodes_.push_back(std::move(added));
    return static_cast<node_index>(nodes_.size() - 1);
}

// The map.

void cluster::refresh(lease_clock::duration min_interval)
{
    const auto now = lease_clock::now();
    if (is_refreshing_ || now - refreshed_at_ < min_interval)
        return;
    refreshed_at_ = now;
    request_map([self = weak_from_this()](const failure_ptr&) {
        if (const auto kept = self.lock())
            kept->is_refreshing_ = false;
    });
    is_refreshing_ = true;
}

std::shared_ptr<client> cluster::choose_source()
{
    // A later host of the URL may answer although the first does not.
    for (const auto& each : seed_->config().location.hosts)
        static_cast<void>(index_of(each));
    // If no node is connected, all are tried, one after another.
    const auto all = nodes();
    const auto* const avoided = lease_clock::now() < isolated_until_ ? isolated_ : nullptr;
    const auto at = [&](std::size_t distance) { return (last_source_ + distance) % all.size(); };
    std::size_t distance = 1;
    while (distance <= all.size() && (!all[at(distance)]->is_connected() || all[at(distance)].get() == avoided))
        ++distance;
    last_source_ = at(distance <= all.size() ? distance : 1);
    return all[last_source_];
}

void cluster::request_map(std::function<void(failure_ptr)> done)
{
    const auto source = choose_source();
    const auto& config = source->config();
    // The reply comes behind those of all batches in flight, each of which may wait for replicas.
    const auto replica_waits = config.replicas > 0 ? config.replica_timeout * int{batch_size::max_in_flight} : 0ms;
    const auto timeout = source->is_connected() ? answer_timeout + replica_waits : config.connect_timeout;
    source->enqueue(make_node_command(*source, {"CLUSTER", "SLOTS"}, timeout,
        [self = weak_from_this(), replier = source->node(), done = std::move(done)](
            const reply& answer, failure_ptr failure) {
            const auto kept = self.lock();
            try {
                if (kept && !failure)
                    failure = kept->on_map(answer, replier);
            } catch (...) {
                done(nullptr);
                throw;
            }
            done(std::move(failure));
        }));
}

failure_ptr cluster::on_map(const reply& answer, const endpoint& replier)
{
    const auto ranges = parse_slots(answer, replier);
    if (!ranges)
        return refusal(answer);
    for (const auto& each : *ranges)
        assign(each, index_of(seed_->config().reachable(each.master)));
    move_waiting();
    return nullptr;
}

void cluster::assign(const slot_range& slots, node_index owner)
{
    const auto all = nodes();
    // The slots that each node has lost.
    std::map<node_index, std::bitset<slot_count>> lost;
    {
        const std::lock_guard guard(mutex_);
        for (auto slot = std::size_t{slots.first}; slot <= slots.last; ++slot) {
            const auto before = std::exchange(owners_[slot], owner);
            if (before == owner)
                continue;
            lost[before].set(slot);
            all[owner]->anchor().forget(static_cast<slot_number>(slot));
        }
    }
    // The waiters subscribe again, at the new owner.
    for (const auto& [before, moved] : lost)
        all[before]->wake_waiters([&](std::string_view key) { return moved[slot_of(key)]; });
}

void cluster::move_waiting()
{
    const auto all = nodes();
    for (const auto& from : all) {
        auto moved = from->take_waiting([&](const remote::operation& each) {
            const auto& routed = static_cast<const client_operation&>(each);
            return routed.slot && !routed.is_pinned && client_for(*routed.slot) != from;
        });
        for (auto& each : moved)
            submit(std::move(each));
    }
}

// Operations that cannot be sent.

void cluster::note_blocked()
{
    refresh(blocked_interval);
    if (is_timer_armed_ || !timer_)
        return;
    is_timer_armed_ = true;
    timer_->expires_after(blocked_interval);
    timer_->async_wait([self = weak_from_this()](const error_code& error) {
        const auto kept = self.lock();
        if (kept && !error)
            kept->on_timer();
    });
}

void cluster::on_timer()
{
    is_timer_armed_ = false;
    bool is_blocked = false;
    for (const auto& each : nodes()) {
        if (!each->is_blocked())
            continue;
        is_blocked = true;
        each->report_unreachable();
    }
    if (is_blocked)
        note_blocked();
}

void cluster::cancel_timer() noexcept
{
    is_timer_armed_ = false;
    if (timer_)
        timer_->cancel();
}

// The end.

void cluster::close(lease_clock::duration deadline, completion<close_outcome> done)
{
    struct open_clients
    {
        std::atomic<std::size_t> count;
        completion<close_outcome> done;
    };
    std::vector<std::shared_ptr<client>> all;
    {
        const std::lock_guard guard(mutex_);
        closes_until_ = saturating_add(lease_clock::now(), deadline);
        all = nodes_;
    }
    const auto left = std::make_shared<open_clients>(all.size(), std::move(done));
    for (const auto& each : all) {
        each->close(deadline, [self = weak_from_this(), left](close_outcome) {
            if (--left->count > 0)
                return;
            if (const auto kept = self.lock())
                kept->cancel_timer();
            left->done({});
        });
    }
}

void cluster::cancel_close() noexcept
{
    const std::lock_guard guard(mutex_);
    closes_until_.reset();
    for (const auto& each : nodes_)
        each->cancel_close();
}

void cluster::retire() noexcept
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : nodes_)
        each->retire();
}

void cluster::context_shutdown() noexcept
{
    timer_.reset();
    std::vector<std::shared_ptr<client>> dropped;
    const std::lock_guard guard(mutex_);
    dropped.swap(nodes_);
}

} // namespace colock::inline v0::redis::detail
