// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/layout/lock_queue.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/coroutine_operation.hpp"
#include "zookeeper/operations/paths.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

failure_ptr in_doubt(const error_code& cause)
{
    return make_failure(errc::outcome_unknown,
        "an earlier request of this acquisition was lost with its session, and it is not proven that the request can "
        "no longer take effect",
        cause);
}

/// Removes the nodes that a claim has, or may have, at the servers: its node, and its node in the index of its group.
class release_operation final : public coroutine_operation
{
public:
    release_operation(
        operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee)
        : coroutine_operation(owner), claim_(std::move(claim)), done_(std::move(done)), guarantee_(guarantee)
    {
    }

private:
    coroutine run() override
    {
        auto& state = state_of(*claim_);
        if (state.session != sessions().number()) {
            if (!forget_old_session())
                co_await fail_in_doubt();
        } else if (!state.creates.empty()) {
            co_await remove_lost_nodes();
        }
        pending_reply node(*this);
        pending_reply indexed(*this);
        // Both are sent in one write. The index names every holder, so the index node is removed last.
        if (!state.node.empty() || state.indexed) {
            requests& sender = co_await connected();
            if (!state.node.empty())
                sender.leave(state.node,
                    guarantee_ == release_guarantee::released ? get_batching() : batching::forbidden, node.expect());
            if (state.indexed)
                sender.remove(index_path(config(), *claim_), indexed.expect());
        }
        if (node.is_expected()) {
            const reply& reply = co_await node;
            if (!is_gone(reply))
                co_await fail_with(reply);
            note_removed(reply);
            state.forget_node(sessions());
        }
        if (indexed.is_expected()) {
            const reply& reply = co_await indexed;
            // When `run` is called again, `is_released_` still tells whether the lock was released.
            if (reply.outcome == status::unanswered)
                co_await begin_again();
            if (!is_gone(reply))
                co_await fail_with(reply);
            sessions().note_removed(index_path(config(), *claim_));
            state.indexed = false;
        }
        if (guarantee_ == release_guarantee::settled && !state.creates.empty())
            co_await fail_in_doubt();
        state.stop_waiting();
        end();
        done_({is_released_ ? release_status::released : release_status::not_held, nullptr});
    }

    /// Returns whether the old session is known to have ended, which means that its nodes are gone.
    [[nodiscard]] bool forget_old_session()
    {
        auto& state = state_of(*claim_);
        // Nothing of this claim was sent in the current session.
        settle_creations(sessions(), *claim_);
        if (state.session != 0 && sessions().lost().may_arrive(state.session))
            return false;
        state.forget_node(sessions());
        state.indexed = false;
        return true;
    }

    /// Removes the nodes of creations whose replies were lost. Each is removed after all earlier requests were carried
    /// out. The creations stay in doubt until all of the nodes are gone.
    coroutine remove_lost_nodes()
    {
        const auto folder = key_folder(config(), claim_->key());
        co_await sync(folder);
        pending_reply listed(*this);
        (co_await connected()).shared_children(folder, listed.expect());
        const reply& children = co_await listed;
        if (!is_gone(children))
            co_await fail_with(children);
        for (const auto& name : names_with_prefix(claim_prefix(config(), *claim_), children.names())) {
            const auto path = child_path(folder, name);
            pending_reply removed(*this);
            (co_await connected()).remove(path, removed.expect());
            const reply& reply = co_await removed;
            if (!is_gone(reply))
                co_await fail_with(reply);
            sessions().note_removed(path);
            note_removed(reply);
        }
        settle_creations(sessions(), *claim_);
        state_of(*claim_).forget_node(sessions());
    }

    [[nodiscard]] static bool is_gone(const reply& reply) noexcept
    {
        return reply.ok() || reply.outcome == status::no_node;
    }
    /// The removal of a node that waited in the queue does not release a lock.
    void note_removed(const reply& reply) { is_released_ = is_released_ || (reply.ok() && state_of(*claim_).granted); }

    [[nodiscard]] stop fail_in_doubt()
    {
        // A session that is being closed may still be proven to have ended.
        const auto cause = sessions().is_closing() ? error_code() : make_error_code(errc::lost);
        end();
        done_({release_status::failed, in_doubt(cause)});
        return {};
    }

    /// Abandons the session if it has expired at the servers, because nothing more can be proven about its requests.
    /// The session is kept while other claims wait in it: if a server resumes it, they keep their places in the queue.
    void failed(delivery, failure_ptr failure) override
    {
        state_of(*claim_).stop_waiting();
        if (owner_->has_no_waiters() && sessions().is_presumed_expired()) {
            sessions().leave_to_expire();
            failure = make_failure(failure->code,
                "no server has answered for a session timeout, after which the servers end the session by themselves",
                errc::lost);
        }
        done_({release_status::failed, std::move(failure)});
    }

    const claim_ptr claim_;
    completion<release_outcome> done_;
    const release_guarantee guarantee_;
    bool is_released_ = false;
};

} // namespace

operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee)
{
    return operation_ptr(new release_operation(owner, std::move(claim), std::move(done), guarantee));
}

} // namespace colock::inline v0::zookeeper::detail
