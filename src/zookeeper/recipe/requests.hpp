// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"
#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/recipe/recent_lists.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// Whether a request may share a transaction with other requests. Its status is `batch_aborted` if another request of
/// the transaction fails.
enum class batching : unsigned char
{
    allowed,
    forbidden,
};

/// The requests of a session. Requests that are made in one event-loop iteration are sent at its end, a few hundred in
/// one write. Requests that may share a transaction are sent first, in transactions, each of which costs the server
/// about as much as one request. The other requests follow, and shared lists are sent last. Each kind keeps its order.
///
/// A request is sent while the session is connected, or not at all. Its completion is called later, on the strand. The
/// status is `unanswered` if the connection was lost meanwhile.
///
/// Thread safety: none.
class requests
{
public:
    /// Interface of the session that sends the requests.
    class transport
    {
    public:
        /// Returns false if no request can be sent now. Otherwise `flush` is called at the end of this event-loop
        /// iteration.
        [[nodiscard]] virtual bool take_request() = 0;
        /// Returns null if no request can be sent any more.
        [[nodiscard]] virtual zk_client* sender() = 0;
        /// Completes a request later. The request has been answered, or was not sent.
        virtual void complete_later(std::unique_ptr<request> request) = 0;

    protected:
        ~transport() = default;
    };

    explicit requests(transport& to) noexcept : transport_(to) {}

    /// Creates an ephemeral sequential node in a folder. Also writes to the folder, which must have no data of its own.
    /// The reply contains the number of nodes in the folder, counted in the same transaction.
    void enter(const std::string& folder, std::string_view name, std::string_view data, batching batching_mode,
        reply_handler done);
    void leave(const std::string& path, batching batching_mode, reply_handler done);

    void create(const std::string& path, std::string_view data, node_kind lifetime, reply_handler done);
    void remove(const std::string& path, reply_handler done);
    void write(const std::string& path, std::string_view data, reply_handler done);
    void read(const std::string& path, reply_handler done);
    /// The next change is reported. A node that does not exist is not watched.
    void read_and_watch(const std::string& path, reply_handler done);
    void children(const std::string& path, reply_handler done);
    void children_and_watch(const std::string& path, reply_handler done);
    /// Lists the children of a folder, after all requests that were made until now. Calls for the same folder share one
    /// request until it is sent. Only one such request for each folder is in flight, and calls meanwhile share the next
    /// one. So the cost of many waiters in one folder grows with time, not with their number.
    void shared_children(const std::string& path, reply_handler done);
    /// Returns a list of the folder that arrived a short time ago, and was made after that transaction; null if there
    /// is none.
    [[nodiscard]] const folder_children* recent_children(
        std::string_view path, std::uint64_t transaction) const noexcept
    {
        return recent_lists_.find(path, transaction, lease_clock::now());
    }
    void forget_lists() noexcept { recent_lists_.clear(); }
    void forget_old_lists() noexcept { recent_lists_.forget_old(lease_clock::now()); }
    void exists(const std::string& path, reply_handler done);
    /// Reads after this request return a state that is not older than the request. The node may be missing.
    ///
    /// The request is a transaction that changes nothing, because only a majority can carry it out, and the server
    /// answers later reads of the session after it. The server's own `sync` proves less: a leader that was paused, or
    /// is cut off, answers it and all reads from the past, although the others have replaced it.
    void sync(const std::string& path, reply_handler done);
    void multi(std::vector<change> changes, reply_handler done);

    [[nodiscard]] bool empty() const noexcept { return waiting_.empty() && waiting_list_count_ == 0; }
    /// Sends the requests. Returns true if there are more, which have to be sent by another handler.
    [[nodiscard]] bool flush();
    /// Completes the requests that were not sent, because the connection was lost: on the next connection nothing may
    /// be sent before the session is verified.
    void refuse_unsent();
    /// Returns the requests that were not sent, which the caller has to complete.
    [[nodiscard]] driver_report_list take_unsent() noexcept;

private:
    enum class kind : unsigned char
    {
        enter,
        leave,
        create,
        remove,
        write,
        read,
        read_and_watch,
        children,
        children_and_watch,
        exists,
        multi,
    };
    struct pending_request
    {
        kind type;
        batching batching_mode = batching::forbidden;
        node_kind lifetime = node_kind::persistent;
        /// Path of the node, or of its folder if the request is `enter`.
        std::string path{};
        std::string name{};
        std::string data{};
        std::vector<change> changes{};
        std::unique_ptr<request> driver_request{};
    };
    class batch;

    /// A request for the children of a folder, which several callers share.
    struct shared_list
    {
        /// Requests that the next list answers.
        std::vector<std::unique_ptr<request>> waiting{};
        bool is_in_flight = false;
    };

    void submit(pending_request pending, reply_handler done);
    void send_lists(zk_client& driver);
    void list_answered(const std::string& path, std::vector<std::unique_ptr<request>> waiting, const reply& reply);
    void refuse(std::unique_ptr<request> request, status outcome);
    [[nodiscard]] static bool is_batchable(const pending_request& pending) noexcept;
    void send_batches(zk_client& driver, std::vector<pending_request>& all);
    /// \param members indexes of the requests in `all`
    static void send_batch(zk_client& driver, std::vector<pending_request>& all, std::span<const std::size_t> members);
    static void send(zk_client& driver, pending_request& pending);

    transport& transport_;
    std::vector<pending_request> waiting_;
    std::map<std::string, shared_list> lists_;
    /// Number of folders that have to be listed and have no request in flight.
    std::size_t waiting_list_count_ = 0;
    recent_lists recent_lists_;
};

/// Creates a node and its parents, as far as they do not exist. Reports nothing.
void make_nodes(requests& sender, const std::string& path);

} // namespace colock::inline v0::zookeeper::detail
