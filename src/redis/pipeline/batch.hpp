// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/argument.hpp"
#include "redis/reply.hpp"
#include "redis/scripts/scripts.hpp"
#include "redis/settings.hpp"
#include "redis/slot.hpp"
#include "remote/requests/operation.hpp"
#include "remote/requests/request_queue.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/redis/request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Configuration of every request.
inline constexpr boost::redis::request::config request_config{
    .cancel_on_connection_lost = true,
    .cancel_if_not_connected = false,
    // The driver must not send a request again, because the server would execute it twice.
    .cancel_if_unresponded = true,
    .hello_with_priority = false,
};

using remote::delivery;
using remote::operation_ptr;

/// A script that serves several operations of a batch in one run, and its reply. The reply has one item for each
/// operation, or is a single error for all.
struct batched_script
{
    /// The first `operation_count` keys, one for each operation, and the first `argument_count` arguments belong to the
    /// request. The others are kept to reuse their memory.
    std::vector<std::string> keys{};
    std::vector<std::string> arguments{};
    std::size_t operation_count = 0;
    std::size_t argument_count = 0;
    script::form form = script::form::digest;
    reply answer{};
    bool is_read = false;

    template <argument Key, class... Arguments>
    void add(script::form request_form, const Key& key, const Arguments&... each)
    {
        put(keys, operation_count++, key);
        (put(arguments, argument_count++, each), ...);
        if (request_form == script::form::whole)
            form = request_form;
    }
    /// Returns the answer for the operation at `index`. Called once for each.
    [[nodiscard]] reply take(std::size_t index)
    {
        if (!answer.is(reply::kind::array))
            return answer;
        return index < answer.items.size() ? std::move(answer.items[index]) : reply{};
    }
    void clear() noexcept;

private:
    template <class Text>
    static void put(std::vector<std::string>& to, std::size_t at, const Text& text)
    {
        if (at == to.size())
            to.emplace_back();
        to[at].clear();
        if constexpr (argument<Text>)
            text.append_to(to[at]);
        else
            to[at] += text;
    }
};

struct batched_scripts
{
    batched_script releases{};
    /// Releases of locks that belong to groups.
    batched_script group_releases{};
    batched_script hand_overs{};
};

class batch;

/// One operation of a client: writes its commands into the request of a batch, and handles their replies.
class operation : public remote::operation
{
public:
    /// Adds at least one command that has a reply. Called when the operation is sent, and again if it is queued again.
    virtual void write(boost::redis::request& request) = 0;
    /// Called on the client's strand, at most once per submission. `failure` is set unless the operation was answered.
    virtual void end(delivery status, failure_ptr failure) = 0;
    void fail(delivery status, failure_ptr failure) final;
    /// Number of fences that the operation needs. The batch takes the fences of all of its operations with one command.
    /// In a cluster, it takes the fences of each operation with one command, because each slot has its own counter.
    [[nodiscard]] virtual std::size_t fence_count() const noexcept { return 0; }
    /// Tells whether the operation may raise the fence counter before it takes a fence.
    [[nodiscard]] virtual bool may_anchor() const noexcept { return false; }
    /// Tells whether the operation needs the commands of sorted sets, which the server may refuse.
    [[nodiscard]] virtual bool needs_sorted_sets() const noexcept { return false; }
    /// Tells whether an answer counts only if replicas have confirmed it, if `options::replicas` asks for it.
    [[nodiscard]] virtual bool needs_replicas() const noexcept { return false; }
    /// Adds the operation to the batched script of its kind and returns that script. Then `write` is not called, and
    /// `replies` gets the answer for this operation. Returns null if the operation has to be written by itself.
    [[nodiscard]] virtual batched_script* add_to_batch(batched_scripts& scripts)
    {
        static_cast<void>(scripts);
        return nullptr;
    }

    reply_list replies{};
    /// Last fence of this operation, or the error of the counter.
    reply fence{};
    /// Why too few replicas have confirmed the answer; null if enough have.
    failure_ptr unconfirmed{};
    /// Number of the connection on which the operation was sent.
    std::uint64_t sent_on = 0;
    /// Set before `end` is called: true if the operation was part of a batched script.
    bool was_batched = false;
    /// The slot of the operation's key. Used only in a cluster.
    std::optional<slot_number> slot{};
    /// The next request must be preceded by ASKING, because the node does not own the slot yet. Then `write` adds one
    /// command, and the batch takes no fence: the counter of the slot may be at the owner.
    bool asks = false;
    /// Set before `write` is called: true if the operation has to raise the fence counter before it takes a fence.
    bool raises_counter = false;
    /// The batch that the operation is sent in, until the operation ends; and its index there.
    batch* sent_in = nullptr;
    std::size_t index = 0;
};

/// Operations that are sent in one request, and the state of reading their replies.
///
/// Thread safety: none; belongs to the strand.
class batch
{
public:
    batch() = default;
    batch(const batch&) = delete;
    batch& operator=(const batch&) = delete;
    ~batch();

    void add(operation& operation);
    /// Writes the request. No operation may be added afterwards. Batched scripts, which include the releases, come
    /// first, because operations behind them may wait for a release. The command for the fences comes behind all
    /// operations, and WAIT behind it.
    void write_request(const settings& config);
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] boost::redis::request& request() noexcept { return request_; }

    void set_connection(std::uint64_t server_connection) noexcept;
    /// Handles the next node of a reply.
    void on_node(const boost::redis::resp3::node_view& node);
    void on_reply() noexcept;
    /// True if a reply shows that the server is a read-only replica.
    [[nodiscard]] bool refused_as_replica() const noexcept { return refused_as_replica_; }

    /// Removes an operation that is about to end. Replies that arrive later are read and ignored. Returns whether all
    /// of its replies have arrived; it then has them.
    [[nodiscard]] bool remove(operation& operation);
    /// Ends the operations whose replies have all arrived, and removes the others.
    void finish(remote::request_queue& queue);
    void clear();

private:
    struct slot
    {
        boost::intrusive_ptr<operation> owner;
        /// Number of replies to the commands of the operation, including ASKING and its own INCRBY; 0 in a batched
        /// script.
        std::size_t reply_count = 0;
        /// Number of replies in front that are not for the operation: that of ASKING.
        std::size_t skipped = 0;
        /// The last reply is that of the operation's own INCRBY.
        bool has_own_fence = false;
        /// Index of the operation's last fence, from 1. 0 means that it needs none.
        std::int64_t fence = 0;
        /// The answer counts only if replicas confirm it.
        bool needs_replicas = false;
        /// The batched script of the operation, or null; and the operation's index in the script.
        batched_script* batched = nullptr;
        std::size_t index = 0;
    };
    [[nodiscard]] bool is_answered(std::size_t index) const noexcept;
    void build_scripts();
    void write_for_server(const settings& config);
    void write_for_cluster(slot& each, const settings& config);
    [[nodiscard]] failure_ptr unconfirmed() const;
    void push(const batched_script& batched, const script& script);
    /// Returns the batched script whose reply is being read, or null.
    [[nodiscard]] batched_script* current_script() noexcept;
    void skip_batched() noexcept;

    boost::redis::request request_;
    std::vector<slot> slots_;
    /// Index of the operation whose replies are being read, and the number of its complete replies.
    std::size_t current_ = 0;
    std::size_t complete_replies_ = 0;
    batched_scripts batched_;
    std::vector<std::string_view> words_;
    std::int64_t fence_count_ = 0;
    /// Reply of the INCRBY that takes the fences. Its number is the last of these fences.
    reply fence_;
    bool is_fence_read_ = false;
    /// Number of replicas that are waited for; 0: the batch has no WAIT. Its reply is the last one.
    std::size_t replicas_ = 0;
    reply confirmed_;
    bool is_confirmation_read_ = false;
    bool refused_as_replica_ = false;
};

using batch_ptr = std::unique_ptr<batch>;

} // namespace colock::inline v0::redis::detail
