// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/line.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/names.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

failure_ptr in_doubt(const error_code& cause)
{
    return make_failure(errc::outcome_unknown,
        "an earlier request of this acquisition was lost with its session, and cannot be proven to be dead", cause);
}

class give_back_operation final : public request_operation
{
public:
    give_back_operation(client& owner, claim_ptr claim, completion<release_outcome> done, promise given)
        : request_operation(owner), claim_(std::move(claim)), done_(std::move(done)), promise_(given)
    {
    }

private:
    void begin() override
    {
        auto& state = state_of(*claim_);
        if (state.session != talks().number())
            leave_old_session();
        else if (!state.creates.empty())
            look();
        else if (!state.node.empty() || state.indexed)
            remove();
        else
            finish();
    }

    /// What was in it is over with it, if that is known.
    void leave_old_session()
    {
        auto& state = state_of(*claim_);
        // Nothing of this claim was sent in the session in use.
        note_look(talks(), *claim_);
        if (state.session != 0 && talks().lost().may_arrive(state.session)) {
            finish_in_doubt();
            return;
        }
        state.leave(talks());
        state.indexed = false;
        finish();
    }

    /// Its node, and that in the index of its group, in one write.
    void remove()
    {
        auto* const by = ask();
        if (!by)
            return;
        const auto& state = state_of(*claim_);
        if (state.indexed)
            by->remove(index_path(config(), *claim_), then(&give_back_operation::removed_index));
        if (!state.node.empty())
            by->leave(state.node, promise_ == promise::released ? with() : company::none,
                then(&give_back_operation::removed));
    }

    void removed_index(const reply& got)
    {
        auto& state = state_of(*claim_);
        if (got.ok() || got.what == status::no_node) {
            state.indexed = false;
            if (state.node.empty())
                finish();
        } else if (got.what == status::unanswered) {
            // What has been released stays released meanwhile.
            begin_anew();
        } else {
            end_failed(got);
        }
    }

    void removed(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        // A place in the line is no lock.
        auto& state = state_of(*claim_);
        is_released_ = is_released_ || (got.ok() && state.granted);
        state.leave(talks());
        // Behind this, the answer of the index.
        if (!state.indexed)
            finish();
    }

    /// What was made without our hearing of it: only in its own session, and behind what was sent there.
    void look()
    {
        auto* const by = ask();
        if (!by)
            return;
        const auto folder = key_folder(config(), claim_->key());
        by->sync(folder, replied());
        by->shared_children(folder, then(&give_back_operation::looked));
    }

    void looked(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        const auto found = made_for(claim_prefix(config(), *claim_), got.names());
        left_ = found.size();
        if (found.empty()) {
            note_look(talks(), *claim_);
            state_of(*claim_).leave(talks());
            if (state_of(*claim_).indexed)
                remove();
            else
                finish();
            return;
        }
        auto* const by = ask();
        if (!by)
            return;
        const auto folder = key_folder(config(), claim_->key());
        for (const auto& each : found) {
            state_of(*claim_).node = child_path(folder, each);
            by->remove(state_of(*claim_).node, then(&give_back_operation::removed_one));
        }
        if (state_of(*claim_).indexed)
            by->remove(index_path(config(), *claim_), then(&give_back_operation::removed_index));
    }

    /// What was found stays in doubt until all of it is gone.
    void removed_one(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
        } else if (--left_ == 0) {
            note_look(talks(), *claim_);
            removed(got);
        }
    }

    void finish()
    {
        auto& state = state_of(*claim_);
        if (promise_ == promise::for_good && !state.creates.empty()) {
            finish_in_doubt();
            return;
        }
        state.stop_waiting();
        end();
        done_({is_released_ ? release_status::released : release_status::not_held, nullptr});
    }

    void finish_in_doubt()
    {
        // A session that is being closed may yet be proven to be over.
        const auto cause = talks().closing() ? error_code() : make_error_code(errc::lost);
        end();
        done_({release_status::failed, in_doubt(cause)});
    }

    /// Once its session is over by itself at the servers, nobody is going to prove more of what was sent in it. While
    /// others wait in that session, it is kept: it may come back, and their places in line with it.
    void failed(delivery, failure_ptr why) override
    {
        state_of(*claim_).stop_waiting();
        if (owner_->nobody_waits() && talks().is_out_of_reach()) {
            talks().leave_to_expire();
            why = make_failure(why->code,
                "no server has answered for a session timeout, after which the servers end the session by themselves",
                errc::lost);
        }
        done_({release_status::failed, std::move(why)});
    }

    const claim_ptr claim_;
    completion<release_outcome> done_;
    const promise promise_;
    std::size_t left_ = 0;
    bool is_released_ = false;
};

} // namespace

operation_ptr make_give_back(client& owner, claim_ptr claim, completion<release_outcome> done, promise given)
{
    return operation_ptr(new give_back_operation(owner, std::move(claim), std::move(done), given));
}

} // namespace colock::zookeeper::detail
