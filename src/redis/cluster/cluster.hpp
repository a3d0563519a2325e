// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/client.hpp"
#include "redis/cluster/slot_map.hpp"
#include "redis/operations/client_operation.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/context_member.hpp>
#include <colock/spi/outcome.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

/// The masters of a Redis Cluster, each with a client of its own, and the map from slots to masters.
///
/// An operation is queued at the master that owns the slot of its key. The reply `MOVED` changes the map and sends the
/// operation to the new owner. The reply `ASK` sends this operation alone to the node that takes the slot over. When
/// the map changes, operations that were not sent yet are moved to the new owner, so a master that does not answer
/// delays only the operations that were sent to it.
///
/// All clients use one strand. Thread safety: `submit`, `client_for`, `close`, `cancel_close` and `retire` may be
/// called from any thread; all other functions belong to the strand.
class cluster final : public router, public context_member, public std::enable_shared_from_this<cluster>
{
public:
    /// \param seed the client of the first node of the URL
    [[nodiscard]] static std::shared_ptr<cluster> make(
        const asio::any_io_executor& executor, const std::shared_ptr<client>& seed);
    explicit cluster(const std::shared_ptr<client>& seed);

    void submit(operation_ptr operation) override;
    [[nodiscard]] bool follow_redirection(client_operation& operation) override;
    void publish(std::string_view key) noexcept override;
    void note_blocked() override;
    [[nodiscard]] std::shared_ptr<operation_client> client_of(remote::connection_number connection) override;
    /// Returns the client of the master that owns the slot.
    [[nodiscard]] std::shared_ptr<client> client_for(slot_number slot) const;
    /// Asks one node for the map, and applies it. Calls `done` with a failure if the node does not answer, or if its
    /// reply has another form.
    void request_map(std::function<void(failure_ptr)> done);
    /// Returns the slots that this master owns.
    [[nodiscard]] std::bitset<slot_count> slots_of(const client& master) const;

    void close(lease_clock::duration deadline, completion<close_outcome> done);
    void cancel_close() noexcept;
    /// Called when the adapter no longer exists.
    void retire() noexcept;
    void context_shutdown() noexcept override;

private:
    using node_index = std::uint16_t;

    [[nodiscard]] std::vector<std::shared_ptr<client>> nodes() const;
    /// Returns the index of the node, which is added if it is not known yet.
    [[nodiscard]] node_index index_of(const endpoint& node);
    /// Asks a node for the map, unless this has been done within the interval.
    void refresh(lease_clock::duration min_interval);
    /// Adds the nodes of the URL, and selects the next connected node, or the next node if none is connected.
    [[nodiscard]] std::shared_ptr<client> choose_source();
    [[nodiscard]] failure_ptr on_map(const reply& answer, const endpoint& replier);
    /// Changes the owner of the slots.
    void assign(const slot_range& slots, node_index owner);
    /// Moves operations that were not sent to the owners of their slots.
    void move_waiting();
    void on_timer();
    void cancel_timer() noexcept;

    const std::shared_ptr<client> seed_;
    mutable colock::detail::light_mutex mutex_;
    /// All nodes that were known at some time. An index is never used again. Empty after the context has shut down.
    std::vector<std::shared_ptr<client>> nodes_;
    std::array<node_index, slot_count> owners_{};
    /// Deadline of the close that is in effect.
    std::optional<lease_clock::time_point> closes_until_;

    // Belong to the strand.
    /// Watches operations that cannot be sent. Null after the context has shut down.
    std::unique_ptr<asio::steady_timer> timer_;
    bool is_timer_armed_ = false;
    lease_clock::time_point refreshed_at_{};
    /// Whether an answer to CLUSTER SLOTS is awaited.
    bool is_refreshing_ = false;
    /// The node that was asked last.
    std::size_t last_source_ = 0;
    /// The node that has last said that the cluster is down. Its map may be out of date. It is not asked until then if
    /// another node is connected.
    const client* isolated_ = nullptr;
    lease_clock::time_point isolated_until_{};
};

} // namespace colock::inline v0::redis::detail
