// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/argument.hpp"
#include "redis/pipeline/reply.hpp"
#include "redis/scripts/scripts.hpp"
#include "remote/policy/deadlines.hpp"
#include "remote/requests/operation_allocation.hpp"

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/redis/request.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::redis::detail {

/// How every request of ours travels.
inline constexpr boost::redis::request::config once{
    .cancel_on_connection_lost = true,
    .cancel_if_not_connected = false,
    // A request that is sent again by the driver would run twice.
    .cancel_if_unresponded = true,
    .hello_with_priority = false,
};

using remote::delivery;

/// A script that does for many locks in one run what each would else ask for by itself, and its answer: one for each,
/// or one for all if it was refused.
struct joint_script
{
    /// The first `count` keys and the first `used` arguments are in use; the rest is kept for its memory.
    std::vector<std::string> keys{};
    std::vector<std::string> arguments{};
    std::size_t count = 0;
    std::size_t used = 0;
    script::form form = script::form::digest;
    reply answer{};
    bool read = false;

    template <argument Key, class... Arguments>
    void add(script::form wanted, const Key& key, const Arguments&... each)
    {
        put(keys, count++, key);
        (put(arguments, used++, each), ...);
        if (wanted == script::form::whole)
            form = wanted;
    }
    /// The answer for one of them, once.
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

struct joint_scripts
{
    joint_script releases{};
    /// The same of locks that belong to groups.
    joint_script group_releases{};
    joint_script hand_overs{};
};

class operation;
using operation_ptr = std::unique_ptr<operation>;

/// Some commands that are sent in one piece, and what becomes of them.
class operation : public remote::operation_allocation
{
public:
    operation() = default;
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    virtual ~operation() = default;

    /// Pushes at least one command that has a reply, when it is sent. Called again if it has to be queued anew.
    virtual void write(boost::redis::request& request) = 0;
    /// Called on the client's strand, at most once per submission. `why` is set unless it was answered.
    virtual void end(operation_ptr self, delivery how, failure_ptr why) = 0;
    /// It needs a fence, which the batch gets for all of its operations at once.
    [[nodiscard]] virtual bool wants_fence() const noexcept { return false; }
    /// It takes a fence: now and then it is told to lift the counter of fences first.
    [[nodiscard]] virtual bool may_anchor() const noexcept { return false; }
    /// Nobody waits for it any more, and it changes nothing if it is never sent.
    [[nodiscard]] virtual bool unwanted() const noexcept { return false; }
    /// Adds its part to the script that operations of its kind share, and names that script. Then it is not written,
    /// and `replies` gets the answer to its part. Null if it has to be written by itself.
    [[nodiscard]] virtual joint_script* join(joint_scripts& of)
    {
        static_cast<void>(of);
        return nullptr;
    }

    reply_list replies{};
    /// A number of its own, or why there is none.
    reply fence{};
    /// Not set: at its first submission.
    lease_clock::time_point asked_at{};
    /// Set at the first submission; it is that of the operation, not of one submission.
    lease_clock::time_point deadline{};
    /// The connection that it was sent on.
    std::uint64_t sent_on = 0;
    /// Set with its answer: a joint script has told it.
    bool joined = false;
    /// Set with each submission: this one lifts the fences' counter, before it takes a fence of its own.
    bool anchors = false;
};

/// Operations that travel in one request, and the reading of their replies.
///
/// Thread safety: none; guarded by whoever owns it.
class batch
{
public:
    void add(operation_ptr added);
    /// Writes the request; nothing is added any more. What gives locks back comes first, because what is behind it may
    /// wait for that, and the fences last, after everything that they are for.
    void complete(std::string_view fence_key, std::string_view probe_key);
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
    [[nodiscard]] const boost::redis::request& request() const noexcept { return request_; }
    [[nodiscard]] boost::redis::request& request() noexcept { return request_; }

    void set_link(std::uint64_t server_connection) noexcept;
    /// The next node of a reply, and the end of one.
    void on_node(const boost::redis::resp3::node_view& node);
    void on_reply() noexcept;
    /// A server that only reads has answered.
    [[nodiscard]] bool refused_as_replica() const noexcept { return refused_as_replica_; }

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    /// No operation of it is past its deadline; known with one look.
    [[nodiscard]] bool is_in_time(lease_clock::time_point now) const noexcept { return earliest_ > now; }
    /// Takes out what is past its deadline. The replies of a sent one are then read and dropped.
    [[nodiscard]] std::vector<operation_ptr> take_overdue(lease_clock::time_point now);
    /// Takes out what nobody waits for; before it is sent.
    [[nodiscard]] std::vector<operation_ptr> take_unwanted();
    [[nodiscard]] std::vector<operation_ptr> take_all();
    /// Forgets what was taken out; before it is complete.
    void close_gaps();
    /// Ends every operation: those that have all their replies as answered, the rest as unanswered.
    void finish(const failure_ptr& why);
    void clear();

private:
    struct slot
    {
        operation_ptr owner;
        std::size_t expected = 0;
        /// Which of the fences is its own; 0: none.
        std::int64_t fence = 0;
        /// The script that it shares, and its place there.
        joint_script* joint = nullptr;
        std::size_t place = 0;
    };
    [[nodiscard]] bool is_answered(std::size_t index) const noexcept;
    template <class Predicate>
    [[nodiscard]] std::vector<operation_ptr> take_if(Predicate is_taken);
    /// Gives to the operations what their batch was postponed by.
    void settle_deadlines() noexcept;
    void join(std::string_view fence_key, std::string_view probe_key);
    void push(const joint_script& joint, const script& which, std::initializer_list<std::string_view> last_keys);
    /// The joint script whose reply is read now.
    [[nodiscard]] joint_script* reading() noexcept;
    void skip_joint() noexcept;

    boost::redis::request request_;
    std::vector<slot> slots_;
    /// No operation is due before. In a long queue most batches are passed over with one look.
    lease_clock::time_point earliest_ = lease_clock::time_point::max();
    lease_clock::duration postponed_{};
    /// Whose reply is read, and how many of its replies are complete.
    std::size_t current_ = 0;
    std::size_t complete_ = 0;
    joint_scripts joint_;
    std::vector<std::string_view> words_;
    std::int64_t fences_ = 0;
    /// The last of them.
    reply fence_;
    bool fence_read_ = false;
    bool refused_as_replica_ = false;
};

} // namespace colock::redis::detail
