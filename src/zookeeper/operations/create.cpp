// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/layout/lock_queue.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/folder_operation.hpp"
#include "zookeeper/operations/node_data.hpp"
#include "zookeeper/operations/paths.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Maximum number of attempts to create a node. An attempt fails if the server removes the empty folder before the node
/// is created in it, which does not happen every time.
constexpr int max_attempts = 5;

/// Attempts to take the lock with the recipe for locks of ZooKeeper's documentation ("Recipes and Solutions"). The
/// numbers in the comments of `run` are the steps of the recipe.
class create_operation final : public folder_operation
{
public:
    create_operation(operation_client& owner, claim_ptr claim, completion<create_outcome> done)
        : folder_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          folder_(key_folder(config(), claim_->key())), prefix_(claim_prefix(config(), *claim_))
    {
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }
    [[nodiscard]] bool is_queued_at_backend() const noexcept override
    {
        const auto* const state = find_state(*claim_);
        return state && !state->node.empty();
    }

private:
    /// State of one execution of `run`.
    struct progress
    {
        int attempts = 0;
        /// The folder may not exist, and is created before the node.
        bool needs_folder = false;
        /// The sequence numbers of the folder are used up.
        bool is_exhausted = false;
        /// An event has woken the claim, and maybe others with it, so a list that one of them requested is used.
        bool was_woken = false;
    };

    coroutine run() override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        state.use_session(sessions());
        const bool was_woken = !state.only_polls;
        const bool is_poll = std::exchange(state.only_polls, false) && state.watched == state.predecessor;
        // The replies to the requests below contain every change until now, so only later events end the next wait.
        if (state.source)
            state.source->mark_as_seen();
        if (!state.creates.empty())
            co_await find_own_node();
        else if (is_poll && is_watch_active())
            co_await poll();

        progress so_far{.needs_folder = sessions().folders().find(folder_) == folder_state::unknown,
            .was_woken = was_woken && !state.node.empty()};
        pending_reply indexed(*this);
        for (;;) {
            pending_reply listed(*this);
            bool is_alone = false;
            // 1. Create an ephemeral sequential node, and its folder if the folder does not exist.
            if (state.node.empty()) {
                co_await create_node(so_far, indexed, listed, is_alone);
                if (state.node.empty())
                    continue;
            }
            if (!is_alone) {
                // 2. List the children of the folder.
                queue_position position;
                co_await list_children(so_far.was_woken, listed, position);
                if (position.type == queue_position::kind::absent) {
                    // The node was removed from outside.
                    lose_node();
                    so_far.needs_folder = true;
                    continue;
                }
                // 4. Another node is ahead: wait for its removal. The event, or a poll, leads back to step 2.
                if (position.type != queue_position::kind::first)
                    co_await wait_for(source_of(position));
            }
            // 3. The node with the lowest number has the lock, if no other node can have the same number.
            if (!has_exhausted_number())
                break;
            co_await remove_exhausted_node();
            so_far.needs_folder = so_far.is_exhausted = true;
        }
        if (is_grouped(config(), *claim_))
            co_await ensure_index_node(indexed);
        auto lease = sessions().lease();
        // The session gets another lease when it is connected again. Until then the claim keeps its place in the queue.
        if (!lease || lease->has_ended(lease_clock::now()))
            co_await wait_for(watches::of_node(state.node));
        grant(std::move(lease));
    }

    // The node.

    /// Creates the folder if needed, creates the node, and lists the folder if other nodes are expected there. All of
    /// these requests are sent in one write. Afterwards there is no node if the folder was missing.
    coroutine create_node(progress& so_far, pending_reply& indexed, pending_reply& listed, bool& is_alone)
    {
        auto& state = state_of(*claim_);
        if (++so_far.attempts > max_attempts)
            co_await give_up(so_far.is_exhausted);
        requests& sender = co_await connected();
        if (so_far.needs_folder)
            make_key_folder(sender);
        if (is_grouped(config(), *claim_) && claim_->keeps_place() && !indexed.is_expected())
            create_index_node(sender, indexed);
        pending_reply created(*this);
        send_creation(sender, so_far.needs_folder, created);
        if (!counts_children(so_far.needs_folder) || is_contended())
            sender.shared_children(folder_, listed.expect());

        const reply& reply = co_await created;
        if (reply.outcome == status::no_node && folder_failure().outcome != status::access_denied) {
            note_folder(folder_state::unknown);
            so_far.needs_folder = true;
            co_return;
        }
        if (!is_ours(reply))
            co_await fail_with(reply.outcome == status::no_node ? folder_failure() : reply);
        unanswered_in_ = 0;
        state.node = reply.text;
        state.fence = static_cast<std::uint64_t>(reply.stat.created_in);
        note_folder(reply.child_count > 1 ? folder_state::contended : folder_state::uncontended);
        // The count is 0 unless `requests::enter` has created the node.
        is_alone = reply.child_count == 1;
    }
    void send_creation(requests& sender, bool needs_folder, pending_reply& created)
    {
        unanswered_in_ = sessions().number();
        // Nodes in the folders of other libraries do not contain data of this library.
        const auto data = config().standard() ? format_node_data(*claim_, claim_->ttl()) : std::string();
        if (counts_children(needs_folder))
            sender.enter(folder_, prefix_, data, get_batching(), note_failure(created.expect()));
        else
            sender.create(
                child_path(folder_, prefix_), data, node_kind::ephemeral_sequential, note_failure(created.expect()));
    }
    /// Whether the creation of the node counts the children of its folder, for which it writes to the folder.
    [[nodiscard]] bool counts_children(bool needs_folder) const noexcept
    {
        return config().standard() && !needs_folder;
    }
    [[nodiscard]] bool is_contended() const noexcept
    {
        return sessions().folders().find(folder_) == folder_state::contended;
    }
    [[nodiscard]] bool is_ours(const reply& node) const noexcept
    {
        return node.ok() && node.stat.ephemeral_owner == sessions().id();
    }
    [[nodiscard]] std::string_view own_name() const
    {
        const std::string_view node = state_of(*claim_).node;
        return node.substr(node.rfind('/') + 1);
    }
    void lose_node()
    {
        auto& state = state_of(*claim_);
        state.forget_node(sessions());
        state.use_session(sessions());
    }

    /// \param listed the reply to the list, if the list was requested together with the node
    coroutine list_children(bool was_woken, pending_reply& listed, queue_position& position)
    {
        if (!listed.is_expected()) {
            requests& sender = co_await connected();
            const auto* const recent = was_woken ? sender.recent_children(folder_, state_of(*claim_).fence) : nullptr;
            if (recent) {
                position = recent->queue(config().layout).find(own_name(), claim_->max_holders());
                if (position.type == queue_position::kind::first)
                    co_return;
            }
            sender.shared_children(folder_, listed.expect());
        }
        const reply& children = co_await listed;
        // Other claims may wait behind this node, so the list is requested again as soon as possible.
        if (children.outcome == status::unanswered && claim_->keeps_place())
            co_await begin_again();
        if (!children.ok() && children.outcome != status::no_node)
            co_await fail_with(children);
        position = children.queue(config().layout).find(own_name(), claim_->max_holders());
    }

    /// Returns a completion that notes the failure of the creation. Only the reply to the creation itself proves that
    /// there is no node. It counts even if the operation has begun again meanwhile.
    [[nodiscard]] reply_handler note_failure(reply_handler then)
    {
        return [self = boost::intrusive_ptr(this), number = ++creation_count_, then = std::move(then)](
                   reply reply) mutable {
            if (!reply.ok() && reply.outcome != status::unanswered && number == self->creation_count_)
                self->unanswered_in_ = 0;
            then(std::move(reply));
        };
    }
    /// Notes that the operation begins again, or ends, before the creation was answered.
    void note_lost_create()
    {
        if (const auto sent_in = std::exchange(unanswered_in_, 0))
            state_of(*claim_).creates.add(sent_in);
    }

    /// Finds the node of a creation whose reply was lost. A node of another session is removed, because it does not
    /// last as long as the current session. The creation stays in doubt until each node that was found is known or
    /// removed.
    coroutine find_own_node()
    {
        auto& state = state_of(*claim_);
        co_await sync(folder_);
        pending_reply listed(*this);
        (co_await connected()).shared_children(folder_, listed.expect());
        const reply& children = co_await listed;
        if (!children.ok() && children.outcome != status::no_node)
            co_await fail_with(children);
        for (const auto& name : names_with_prefix(prefix_, children.names())) {
            const auto path = child_path(folder_, name);
            pending_reply found(*this);
            (co_await connected()).exists(path, found.expect());
            const reply& node = co_await found;
            if (!node.ok() && node.outcome != status::no_node)
                co_await fail_with(node);
            if (is_ours(node)) {
                state.node = path;
                state.fence = static_cast<std::uint64_t>(node.stat.created_in);
            } else if (node.ok()) {
                (co_await connected()).remove(path, reply_handler());
            }
        }
        settle_creations(sessions(), *claim_);
    }

    // The folder.

    /// Sends the requests that create the folder and its parents.
    void make_key_folder(requests& sender)
    {
        make_folders(sender, bucket_folder(config(), claim_->key()));
        make_container(sender, folder_);
    }
    void note_folder(folder_state state)
    {
        auto& folders = sessions().folders();
        folders.note(folder_, state);
        // The parent folder may be gone, too.
        if (state == folder_state::unknown)
            folders.note(bucket_folder(config(), claim_->key()), state);
    }

    // The index of the claim's group. A lock that was reported as held has an index node. A claim that waits may have
    // one until it is released.

    void create_index_node(requests& sender, pending_reply& created)
    {
        state_of(*claim_).indexed = true;
        const auto path = index_path(config(), *claim_);
        // A late grant of the same claim may have been released, and its index node removed.
        sessions().note_created(path);
        sender.create(path, {}, node_kind::ephemeral, created.expect());
    }

    /// \param first the reply to the creation of the index node, if it was sent together with the node
    coroutine ensure_index_node(pending_reply& first)
    {
        const auto path = index_path(config(), *claim_);
        if (!first.is_expected())
            create_index_node(co_await connected(), first);
        reply index_reply = co_await first;
        for (int attempts = 0; !index_reply.ok(); ++attempts) {
            if (attempts == max_attempts)
                co_await fail_with(index_reply.outcome == status::node_exists ? folder_failure() : index_reply);
            requests& sender = co_await connected();
            if (index_reply.outcome == status::node_exists) {
                pending_reply found(*this);
                sender.exists(path, found.expect());
                const reply& node = co_await found;
                if (is_ours(node))
                    co_return;
                if (!node.ok() && node.outcome != status::no_node)
                    co_await fail_with(node);
                // The index node belongs to another session, and may last as long as that session.
                if (node.ok())
                    (co_await connected()).remove(path, reply_handler());
            } else if (index_reply.outcome == status::no_node) {
                make_folders(sender, groups_folder(config()));
                make_container(sender, group_folder(config(), claim_->owner().group));
            } else {
                co_await fail_with(index_reply);
            }
            pending_reply created(*this);
            create_index_node(co_await connected(), created);
            index_reply = co_await created;
        }
    }

    // The lock.

    /// Whether the numbers of the folder are used up, so that other nodes may have the same number.
    [[nodiscard]] bool has_exhausted_number() const
    {
        const auto name = own_name();
        const auto number = parse_number(name.substr(std::min(name.size(), prefix_.size())));
        return number && !is_sound(*number);
    }
    /// Removes the node, and then the folder. A new folder counts from zero, but a folder can be removed only when it
    /// is empty. So each claim that becomes the first removes its node.
    coroutine remove_exhausted_node()
    {
        pending_reply removed(*this);
        (co_await connected()).remove(state_of(*claim_).node, removed.expect());
        const reply& reply = co_await removed;
        if (!reply.ok() && reply.outcome != status::no_node)
            co_await fail_with(reply);
        lose_node();
        (co_await connected()).remove(folder_, reply_handler());
    }

    void grant(std::shared_ptr<session_lease> lease)
    {
        auto& state = state_of(*claim_);
        // A claim that is granted again is already tied to the session, and another thread may be reading its lease.
        if (claim_->lease().session() != lease)
            claim_->lease().tie(std::move(lease));
        state.granted = true;
        sessions().note_granted(state.node, claim_);
        state.stop_waiting();
        // All earlier requests of the claim have been carried out or never will be: they were sent in this session, or
        // in one that has ended.
        if (state.creates.empty())
            claim_->clear_in_doubt();
        end();
        done_(create_outcome::granted(state.fence));
    }

    // The predecessor.

    [[nodiscard]] static bool is_behind(const queue_position& position) noexcept
    {
        return position.type == queue_position::kind::behind_one || position.type == queue_position::kind::behind_some;
    }

    [[nodiscard]] std::string source_of(const queue_position& position) const
    {
        return position.type == queue_position::kind::behind_one
                   ? watches::of_node(child_path(folder_, position.predecessor))
                   : watches::of_children(folder_);
    }

    /// Ends the operation. A claim that queues keeps its place, and waits. A single attempt keeps no place.
    coroutine wait_for(std::string source)
    {
        auto& state = state_of(*claim_);
        if (claim_->keeps_place()) {
            state.predecessor = std::move(source);
        } else {
            pending_reply removed(*this);
            (co_await connected()).remove(state.node, removed.expect());
            const reply& reply = co_await removed;
            if (!reply.ok() && reply.outcome != status::no_node)
                co_await fail_with(reply);
            state.forget_node(sessions());
        }
        end();
        done_(create_outcome::busy());
        co_await stop();
    }

    /// Whether the claim is in the queue and its watch of another node is active. A watch of its own node does not
    /// count: with this watch the claim waits for the session's lease.
    [[nodiscard]] bool is_watch_active() const
    {
        const auto& state = state_of(*claim_);
        return !state.node.empty() && state.watched != watches::of_node(state.node) && state.source &&
               state.source->is_active();
    }

    /// Checks whether anything has changed, although the watch is active and has not fired. Does not list the folder,
    /// because every waiter polls, and the cost of a list grows with the number of nodes. If nothing has changed, the
    /// operation ends.
    coroutine poll()
    {
        const auto& state = state_of(*claim_);
        requests& sender = co_await connected();
        // While other claims come and go, the folder is listed again and again, and these lists show more than the
        // requests below. An event that has arrived meanwhile would have made the watch inactive.
        if (const auto* const recent = sender.recent_children(folder_, state.fence)) {
            const auto position = recent->queue(config().layout).find(own_name(), claim_->max_holders());
            if (is_behind(position) && source_of(position) == state.watched)
                co_await wait_for(state.watched);
        }
        if (watches::is_of_children(state.watched)) {
            // When the folder was last listed, every waiter was woken for which there was room.
            const auto revision = state.source->revision();
            pending_reply found(*this);
            sender.exists(folder_, found.expect());
            const reply& folder = co_await found;
            if (!folder.ok() || static_cast<std::uint64_t>(folder.stat.children_modified_in) != revision)
                co_return;
        } else {
            // The claim's own node may have been removed by an administrator, which no watch reports.
            pending_reply predecessor(*this);
            pending_reply own(*this);
            sender.exists(state.watched, predecessor.expect());
            sender.exists(state.node, own.expect());
            if (!(co_await predecessor).ok() || !(co_await own).ok())
                co_return;
        }
        co_await wait_for(state.watched);
    }

    // Failures.

    [[nodiscard]] stop give_up(bool is_exhausted)
    {
        if (!is_exhausted)
            return fail_with(folder_failure());
        end();
        failed(delivery::answered,
            make_failure(errc::unavailable,
                "the sequence numbers of this key are used up; the server begins again once the key has no nodes"));
        return {};
    }

    void failed(delivery, failure_ptr failure) override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        // A place in the queue is a change at the server, so the outcome is unknown.
        const bool may_have_effect = !state.node.empty() || !state.creates.empty() || state.indexed;
        if (!may_have_effect)
            state.forget_node(sessions());
        else if (failure->code == errc::unavailable)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        done_(create_outcome::failed(std::move(failure)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const std::string folder_;
    const std::string prefix_;
    /// Session in which a creation was sent that is not answered; 0: there is none.
    remote::connection_number unanswered_in_ = 0;
    /// Number of creations that were sent.
    unsigned creation_count_ = 0;
};

} // namespace

operation_ptr make_create(operation_client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::zookeeper::detail
