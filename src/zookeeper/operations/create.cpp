// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/driver/line.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/coroutine_operation.hpp"
#include "zookeeper/operations/names.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// The driver's code for a kind of node that the server does not know.
constexpr int unimplemented = -6;
/// A folder may be cleaned up between its making and the first node in it, but not every time.
constexpr int max_attempts = 5;

using folder_state = folder_cache::found;

/// Attempts to take the lock: the recipe for locks of ZooKeeper's documentation ("Recipes and Solutions").
class create_operation final : public coroutine_operation
{
public:
    create_operation(client& owner, claim_ptr claim, completion<create_outcome> done)
        : coroutine_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          folder_(key_folder(config(), claim_->key())), prefix_(claim_prefix(config(), *claim_))
    {
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    /// State of one round of `run`.
    struct progress
    {
        int attempts = 0;
        /// The folder is not known to be there.
        bool makes_folder = false;
        /// The numbers of the folder were used up.
        bool is_worn = false;
    };

    coroutine run() override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        state.enter(active_sessions());
        const bool polls = std::exchange(state.polls, false) && state.watched == state.predecessor;
        // The requests that follow see every change until now, so only later events end the next wait.
        if (state.source)
            state.source->look();
        if (!state.creates.empty())
            co_await find_lost_node();
        else if (polls && watch_stands())
            co_await poll();

        progress so_far{.makes_folder = active_sessions().folders().recall(folder_) == folder_state::unknown};
        pending_reply indexed(*this);
        for (;;) {
            pending_reply listed(*this);
            bool is_alone = false;
            // 1. Create an ephemeral sequential node, and its folder if that is not there.
            if (state.node.empty()) {
                co_await create_node(so_far, indexed, listed, is_alone);
                if (state.node.empty())
                    continue;
            }
            if (!is_alone) {
                // 2. List the children of the folder.
                standing position;
                co_await list_children(listed, position);
                if (position.what == standing::kind::absent) {
                    // Somebody has removed it.
                    lose_node();
                    so_far.makes_folder = true;
                    continue;
                }
                // 4. Another node is in the way: watch it. Its event, or a poll, leads back to step 2.
                if (position.what != standing::kind::first)
                    co_await wait_for(source_of(position));
            }
            // 3. The node with the lowest number has the lock, if nobody else can have the same number.
            if (!has_worn_number())
                break;
            co_await remove_worn_node();
            so_far.makes_folder = so_far.is_worn = true;
        }
        if (is_grouped(config(), *claim_))
            co_await ensure_index_node(indexed);
        auto bound = active_sessions().bound();
        // It will be another one when the session is heard of again; until then the place is kept.
        if (!bound || bound->has_ended(lease_clock::now()))
            co_await wait_for(watches::of_node(state.node));
        grant(std::move(bound));
    }

    // The node.

    /// Makes the folder if needed, creates the node, and lists the folder where others are expected there, in one
    /// write. Afterwards there is no node if the folder was gone.
    coroutine create_node(progress& so_far, pending_reply& indexed, pending_reply& listed, bool& is_alone)
    {
        auto& state = state_of(*claim_);
        if (++so_far.attempts > max_attempts)
            co_await give_up(so_far.is_worn);
        requests& by = co_await connected();
        if (so_far.makes_folder)
            make_key_folder(by);
        if (is_grouped(config(), *claim_) && claim_->queues() && !indexed.is_expected())
            create_index_node(by, indexed);
        pending_reply created(*this);
        send_creation(by, so_far.makes_folder, created);
        if (!counts_children(so_far.makes_folder) || is_crowded())
            by.shared_children(folder_, listed.expect());

        const reply& got = co_await created;
        if (got.what == status::no_node && folder_trouble_.what != status::access_denied) {
            note_folder(folder_state::unknown);
            so_far.makes_folder = true;
            co_return;
        }
        if (!is_ours(got))
            co_await fail_with(got.what == status::no_node ? folder_trouble_ : got);
        created_in_ = 0;
        state.node = got.text;
        state.fence = static_cast<std::uint64_t>(got.stat.created_in);
        note_folder(got.crowd > 1 ? folder_state::crowded : folder_state::quiet);
        // A node that was not made by `enter` is not counted.
        is_alone = got.crowd == 1;
    }
    void send_creation(requests& by, bool makes_folder, pending_reply& created)
    {
        created_in_ = active_sessions().number();
        // The data of other libraries' folders is theirs.
        const auto data = config().standard() ? to_text(*claim_, claim_->ttl()) : std::string();
        if (counts_children(makes_folder))
            by.enter(folder_, prefix_, data, with(), note_answer(created.expect()));
        else
            by.create(
                child_path(folder_, prefix_), data, node_kind::ephemeral_sequential, note_answer(created.expect()));
    }
    /// Whether the creation of the node counts the children of its folder: it writes to the folder for that.
    [[nodiscard]] bool counts_children(bool makes_folder) const noexcept
    {
        return config().standard() && !makes_folder;
    }
    [[nodiscard]] bool is_crowded() const noexcept
    {
        return active_sessions().folders().recall(folder_) == folder_state::crowded;
    }
    [[nodiscard]] bool is_ours(const reply& node) const noexcept
    {
        return node.ok() && node.stat.ephemeral_owner == active_sessions().id();
    }
    [[nodiscard]] std::string_view own_name() const
    {
        const std::string_view node = state_of(*claim_).node;
        return node.substr(node.rfind('/') + 1);
    }
    void lose_node()
    {
        auto& state = state_of(*claim_);
        state.leave(active_sessions());
        state.enter(active_sessions());
    }

    /// \param listed the list that was asked for together with the node, if it was
    coroutine list_children(pending_reply& listed, standing& position)
    {
        if (!listed.is_expected())
            (co_await connected()).shared_children(folder_, listed.expect());
        const reply& children = co_await listed;
        // Others stand behind this node: what was lost is looked for as soon as possible.
        if (children.what == status::unanswered && claim_->queues())
            co_await begin_again();
        if (!children.ok() && children.what != status::no_node)
            co_await fail_with(children);
        position = children.queue(config().layout).find(own_name(), claim_->max_holders());
    }

    /// Only the answer of the creation itself says that there is no node, whatever is told before it, and though the
    /// operation has begun again.
    [[nodiscard]] replied note_answer(replied then)
    {
        return [self = boost::intrusive_ptr(this), number = ++creations_, told = std::move(then)](reply got) mutable {
            if (!got.ok() && got.what != status::unanswered && number == self->creations_)
                self->created_in_ = 0;
            told(std::move(got));
        };
    }
    /// The operation begins again, or ends, without having heard of its creation.
    void note_lost_create()
    {
        if (const auto sent_in = std::exchange(created_in_, 0))
            state_of(*claim_).creates.add(sent_in);
    }

    /// Finds the node of a creation whose answer was lost. Only a node of the session in use lasts as long as that
    /// session. The doubt stays until all nodes that were found are known or gone.
    coroutine find_lost_node()
    {
        auto& state = state_of(*claim_);
        requests& by = co_await connected();
        pending_reply listed(*this);
        by.sync(folder_, replied());
        by.shared_children(folder_, listed.expect());
        const reply& children = co_await listed;
        if (!children.ok() && children.what != status::no_node)
            co_await fail_with(children);
        for (const auto& name : made_for(prefix_, children.names())) {
            const auto path = child_path(folder_, name);
            pending_reply found(*this);
            (co_await connected()).exists(path, found.expect());
            const reply& node = co_await found;
            if (!node.ok() && node.what != status::no_node)
                co_await fail_with(node);
            if (is_ours(node)) {
                state.node = path;
                state.fence = static_cast<std::uint64_t>(node.stat.created_in);
            } else if (node.ok()) {
                (co_await connected()).remove(path, replied());
            }
        }
        note_look(active_sessions(), *claim_);
    }

    // The folder.

    /// Sends the creation of the folder, and of those that it is in.
    void make_key_folder(requests& by)
    {
        make_once(by, bucket_folder(config(), claim_->key()));
        make_container(by, folder_);
    }
    /// And those that it is in. Those that come after it in this write need not ask for it.
    void make_once(requests& by, const std::string& folder)
    {
        for (std::size_t end = folder.find('/', 1); end != std::string::npos; end = folder.find('/', end + 1))
            make_one(by, folder.substr(0, end));
        make_one(by, folder);
    }
    void make_one(requests& by, const std::string& folder)
    {
        if (active_sessions().folders().recall(folder) != folder_state::unknown)
            return;
        by.create(folder, {}, node_kind::persistent, then(&create_operation::folder_made, folder));
        active_sessions().folders().note(folder, folder_state::quiet);
    }
    void make_container(requests& by, const std::string& folder)
    {
        by.create(folder, {}, plain_folders_ ? node_kind::persistent : node_kind::container,
            then(&create_operation::folder_made, folder));
    }

    /// What is known of a folder is noted by its own answer, whatever becomes of the node that stands behind it. A
    /// server that puts off what has to wait carries out only the first of a write: each attempt must begin where the
    /// last has ended.
    void folder_made(const reply& got, const std::string& folder)
    {
        auto& folders = active_sessions().folders();
        // Where we may make none it is there, or nothing of ours can be: asking again changes neither.
        const bool is_there = got.ok() || got.what == status::node_exists || got.what == status::access_denied;
        folders.note(folder, is_there ? folder_state::quiet : folder_state::unknown);
        // Any of those that it would be in.
        for (auto end = folder.rfind('/'); got.what == status::no_node && end != 0 && end != std::string::npos;
            end = folder.rfind('/', end - 1))
            folders.note(folder.substr(0, end), folder_state::unknown);
        if (got.what == status::refused && got.code == unimplemented)
            plain_folders_ = true;
        else if (!got.ok() && got.what != status::node_exists && folder_trouble_.what == status::no_node)
            folder_trouble_ = got;
    }
    void note_folder(folder_state how)
    {
        auto& folders = active_sessions().folders();
        folders.note(folder_, how);
        // The one that it is in may be gone, too.
        if (how == folder_state::unknown)
            folders.note(bucket_folder(config(), claim_->key()), how);
    }

    // The index of its group. What is told to be held is there. What waits may be there, until it is given back.

    void create_index_node(requests& by, pending_reply& created)
    {
        state_of(*claim_).indexed = true;
        by.create(index_path(config(), *claim_), {}, node_kind::ephemeral, created.expect());
    }

    /// \param first the creation that was sent together with the node, if it was
    coroutine ensure_index_node(pending_reply& first)
    {
        const auto path = index_path(config(), *claim_);
        if (!first.is_expected())
            create_index_node(co_await connected(), first);
        reply got = co_await first;
        for (int attempts = 0; !got.ok(); ++attempts) {
            if (attempts == max_attempts)
                co_await fail_with(got.what == status::node_exists ? folder_trouble_ : got);
            requests& by = co_await connected();
            if (got.what == status::node_exists) {
                pending_reply found(*this);
                by.exists(path, found.expect());
                const reply& node = co_await found;
                if (is_ours(node))
                    co_return;
                if (!node.ok() && node.what != status::no_node)
                    co_await fail_with(node);
                // It is of another session, with which it may last a while.
                if (node.ok())
                    (co_await connected()).remove(path, replied());
            } else if (got.what == status::no_node) {
                make_once(by, groups_folder(config()));
                make_container(by, group_folder(config(), claim_->owner().group));
            } else {
                co_await fail_with(got);
            }
            pending_reply created(*this);
            create_index_node(co_await connected(), created);
            got = co_await created;
        }
    }

    // The lock.

    /// The numbers of the folder are used up, and others may have the same number.
    [[nodiscard]] bool has_worn_number() const
    {
        const auto name = own_name();
        const auto number = parse_number(name.substr(std::min(name.size(), prefix_.size())));
        return number && !is_sound(*number);
    }
    /// A folder that is made again counts from zero. It can be made again as soon as no node is there: all who come to
    /// be the first remove theirs.
    coroutine remove_worn_node()
    {
        pending_reply removed(*this);
        (co_await connected()).remove(state_of(*claim_).node, removed.expect());
        const reply& got = co_await removed;
        if (!got.ok() && got.what != status::no_node)
            co_await fail_with(got);
        lose_node();
        (co_await connected()).remove(folder_, replied());
    }

    void grant(std::shared_ptr<session_bound> bound)
    {
        auto& state = state_of(*claim_);
        // One that is granted again is tied already, and others look at its lease.
        if (claim_->lease().session() != bound)
            claim_->lease().tie(std::move(bound));
        state.granted = true;
        active_sessions().inside().note_granted(state.node);
        state.stop_waiting();
        // Whatever was sent for it before is past: it was sent in this session, or in one that is over.
        if (state.creates.empty())
            claim_->clear_taint();
        end();
        done_(create_outcome::granted(state.fence));
    }

    // The predecessor.

    [[nodiscard]] std::string source_of(const standing& position) const
    {
        return position.what == standing::kind::behind_one ? watches::of_node(child_path(folder_, position.predecessor))
                                                           : watches::of_children(folder_);
    }

    /// Ends the operation: the claim keeps its place, and waits. A single attempt keeps no place.
    coroutine wait_for(std::string source)
    {
        auto& state = state_of(*claim_);
        if (claim_->queues()) {
            state.predecessor = std::move(source);
        } else {
            pending_reply removed(*this);
            (co_await connected()).remove(state.node, removed.expect());
            const reply& got = co_await removed;
            if (!got.ok() && got.what != status::no_node)
                co_await fail_with(got);
            state.leave(active_sessions());
        }
        end();
        done_(create_outcome::busy());
        co_await stop();
    }

    /// It stands in line, and waits for another node than its own, which its session's bound would be.
    [[nodiscard]] bool watch_stands() const
    {
        const auto& state = state_of(*claim_);
        return !state.node.empty() && state.watched != watches::of_node(state.node) && state.source &&
               state.source->is_armed();
    }

    /// A waiter looks from time to time, though its watch stands and has told nothing. A list of the folder would cost
    /// as much as there are nodes in it, and everybody who waits asks as often. If all is as it was, the operation
    /// ends.
    coroutine poll()
    {
        const auto& state = state_of(*claim_);
        requests& by = co_await connected();
        if (watches::is_of_children(state.watched)) {
            // When the folder was last listed, every waiter that has room was woken.
            const auto revision = state.source->revision();
            pending_reply found(*this);
            by.exists(folder_, found.expect());
            const reply& folder = co_await found;
            if (!folder.ok() || static_cast<std::uint64_t>(folder.stat.children_modified_in) != revision)
                co_return;
        } else {
            // The own node may have been removed by an administrator, which no watch tells.
            pending_reply predecessor(*this);
            pending_reply own(*this);
            by.exists(state.watched, predecessor.expect());
            by.exists(state.node, own.expect());
            if (!(co_await predecessor).ok() || !(co_await own).ok())
                co_return;
        }
        co_await wait_for(state.watched);
    }

    // The end without a lock.

    [[nodiscard]] stop give_up(bool is_worn)
    {
        if (!is_worn)
            return fail_with(folder_trouble_);
        end();
        failed(delivery::answered, make_failure(errc::unavailable, "the server has numbered as many nodes of this key "
                                                                   "as it can, and begins again once none is there"));
        return {};
    }

    void failed(delivery, failure_ptr why) override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        // A place in the line is something that was carried out.
        const bool has_left_a_trace = !state.node.empty() || !state.creates.empty() || state.indexed;
        if (!has_left_a_trace)
            state.leave(active_sessions());
        else if (why->code == errc::unavailable)
            why = make_failure(errc::outcome_unknown, why->detail, why->cause);
        done_(create_outcome::failed(std::move(why)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const std::string folder_;
    const std::string prefix_;
    bool plain_folders_ = false;
    /// The session in which a creation was sent that is not answered; 0: there is none.
    remote::connection_number created_in_ = 0;
    /// Number of creations that were sent.
    unsigned creations_ = 0;
    /// Why there is no folder, by the first of those it would be in.
    reply folder_trouble_{.what = status::no_node};
};

} // namespace

operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::zookeeper::detail
