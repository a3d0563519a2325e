// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/line.hpp"
#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/names.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// The driver's code for a kind of node that the server does not know.
constexpr int unimplemented = -6;
/// A folder may be cleaned up between its making and the first node in it, but not every time.
constexpr int most_attempts = 5;

class create_operation final : public request_operation
{
public:
    create_operation(client& owner, claim_ptr claim, completion<create_outcome> done)
        : request_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          folder_(key_folder(config(), claim_->key())), prefix_(claim_prefix(config(), *claim_))
    {
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    enum class index : unsigned char
    {
        none,
        asked,
        no_folder,
        /// It may be there still, and goes with that.
        of_another_session,
        there,
    };

    void begin() override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        state.enter(talks());
        makes_folder_ = is_worn_ = false;
        index_ = index::none;
        grants_with_index_ = false;
        attempts_ = index_attempts_ = 0;
        const bool polls = std::exchange(state.polls, false) && state.source && state.watched == state.blocker;
        // What has changed until now is seen by the requests that follow.
        if (state.source)
            state.source->look();
        if (!state.creates.empty())
            look_for_lost();
        else if (state.node.empty())
            take_place();
        // It waits for news of its session, not for another node.
        else if (state.watched == watches::of_node(state.node))
            list();
        else if (polls && state.source->is_armed())
            poll();
        else
            list();
    }

    // A waiter looks from time to time, though its watch stands and has told nothing. A list of the folder would cost
    // as much as there are nodes in it, and everybody who waits asks as often.

    void poll()
    {
        if (watches::is_of_children(state_of(*claim_).watched))
            poll_folder();
        else
            poll_predecessor();
    }

    /// Its own node may have been removed by an administrator, which no watch tells.
    void poll_predecessor()
    {
        auto* const by = ask();
        if (!by)
            return;
        by->exists(state_of(*claim_).watched, then(&create_operation::polled_predecessor));
        by->exists(state_of(*claim_).node, then(&create_operation::polled_own));
    }
    void polled_predecessor(const reply& got) { has_predecessor_ = got.ok(); }
    void polled_own(const reply& got)
    {
        if (has_predecessor_ && got.ok())
            wait_for(state_of(*claim_).blocker);
        else
            list();
    }

    /// When its folder was last listed, whoever has room there was woken.
    void poll_folder()
    {
        const auto revision = state_of(*claim_).source->revision();
        if (auto* const by = ask())
            by->exists(folder_, then(&create_operation::polled_folder, revision));
    }
    void polled_folder(const reply& got, const std::uint64_t& revision)
    {
        if (got.ok() && static_cast<std::uint64_t>(got.stat.children_modified_in) == revision)
            wait_for(state_of(*claim_).blocker);
        else
            list();
    }

    /// One that was made without our hearing of it stands in the line already.
    void look_for_lost()
    {
        auto* const by = ask();
        if (!by)
            return;
        by->sync(folder_, replied());
        by->shared_children(folder_, then(&create_operation::looked));
    }

    void looked(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        const auto found = made_for(prefix_, got.names());
        left_ = found.size();
        if (found.empty()) {
            note_look(talks(), *claim_);
            take_place();
            return;
        }
        for (const auto& each : found) {
            auto* const by = ask();
            if (!by)
                return;
            auto path = child_path(folder_, each);
            by->exists(path, then(&create_operation::found, path));
        }
    }

    /// Only what belongs to the session in use lasts as long as that: the rest may go at any time, and another session
    /// vouches for none of it. The doubt stays until all that was found is known.
    void found(const reply& got, const std::string& path)
    {
        auto& state = state_of(*claim_);
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        if (got.ok() && got.stat.ephemeral_owner == talks().id()) {
            state.node = path;
            state.fence = static_cast<std::uint64_t>(got.stat.created_in);
        } else if (got.ok()) {
            if (auto* const by = ask())
                by->remove(path, replied());
            else
                return;
        }
        if (--left_ > 0)
            return;
        note_look(talks(), *claim_);
        if (state.node.empty())
            take_place();
        else
            list();
    }

    void take_place()
    {
        if (talks().folders().recall(folder_) == folder_memory::found::unknown)
            make_folder();
        else
            make();
    }

    /// What is told to be held is in the index of its group. What waits may be there already, until it is given back.
    void make_index()
    {
        auto* const by = ask();
        if (!by)
            return;
        const auto path = index_path(config(), *claim_);
        if (index_ == index::of_another_session)
            by->remove(path, replied());
        if (index_ == index::no_folder) {
            const auto folder = group_folder(config(), claim_->owner().group);
            make_once(*by, groups_folder(config()));
            make_container(*by, folder);
        }
        state_of(*claim_).indexed = true;
        index_ = index::asked;
        by->create(path, {}, node_kind::ephemeral, then(&create_operation::made_index));
    }

    void made_index(const reply& got)
    {
        if (got.ok()) {
            has_index();
        } else if (got.what == status::node_exists) {
            if (auto* const by = ask())
                by->exists(index_path(config(), *claim_), then(&create_operation::found_index));
        } else if (got.what == status::no_node) {
            make_index_again(index::no_folder, got);
        } else {
            end_failed(got);
        }
    }
    void found_index(const reply& got)
    {
        if (got.ok() && got.stat.ephemeral_owner == talks().id())
            has_index();
        else if (got.ok() || got.what == status::no_node)
            make_index_again(index::of_another_session, got);
        else
            end_failed(got);
    }
    void make_index_again(index why, const reply& got)
    {
        index_ = why;
        if (++index_attempts_ > most_attempts)
            end_failed(got.ok() ? trouble_ : got);
        else
            make_index();
    }
    void has_index()
    {
        index_ = index::there;
        if (std::exchange(grants_with_index_, false))
            grant();
    }

    /// With the line, in one write, where more than one may stand in that.
    void make()
    {
        auto* const by = ask();
        if (!by)
            return;
        if (++attempts_ > most_attempts) {
            if (is_worn_)
                end_without_number();
            else
                end_failed(trouble_);
            return;
        }
        if (is_grouped(config(), *claim_) && claim_->queues() && index_ == index::none)
            make_index();
        created_in_ = talks().number();
        // The data of other libraries' folders is theirs.
        const bool enters = config().standard() && !makes_folder_;
        is_listing_ = !enters || talks().folders().recall(folder_) == folder_memory::found::crowded;
        const auto data = config().standard() ? to_text(*claim_, claim_->ttl()) : std::string();
        if (enters)
            by->enter(folder_, prefix_, data, with(), when_made());
        else
            by->create(child_path(folder_, prefix_), data, node_kind::ephemeral_sequential, when_made());
        if (is_listing_)
            by->shared_children(folder_, then(&create_operation::listed));
    }

    /// It begins anew, or ends, without having heard of that.
    void note_lost_create()
    {
        if (const auto sent_in = std::exchange(created_in_, 0))
            state_of(*claim_).creates.add(sent_in);
    }

    /// Only its own answer says that there is no node, whatever is told before it, and though another round has begun.
    [[nodiscard]] replied when_made()
    {
        return [self = boost::intrusive_ptr(this), number = ++creates_, told = then(&create_operation::made)](
                   const reply& got) mutable {
            if (!got.ok() && got.what != status::unanswered && number == self->creates_)
                self->created_in_ = 0;
            told(got);
        };
    }

    void made(const reply& got)
    {
        if (got.ok())
            created_in_ = 0;
        auto& state = state_of(*claim_);
        if (got.ok() && got.stat.ephemeral_owner == talks().id()) {
            state.node = got.text;
            state.fence = static_cast<std::uint64_t>(got.stat.created_in);
            note_folders(got.crowd > 1 ? folder_memory::found::crowded : folder_memory::found::quiet);
            // Nobody is before it. A node that was not made by `enter` is not counted.
            if (got.crowd == 1)
                grant();
            else if (!is_listing_)
                list();
        } else if (got.what == status::no_node && trouble_.what == status::access_denied) {
            end_failed(trouble_);
        } else if (got.what == status::no_node) {
            note_folders(folder_memory::found::unknown);
            make_folder();
        } else {
            end_failed(got);
        }
    }

    /// That the server has given to our node.
    [[nodiscard]] std::optional<std::int32_t> number_of(std::string_view node) const
    {
        return parse_number(node.substr(std::min(node.size(), folder_.size() + 1 + prefix_.size())));
    }

    void note_folders(folder_memory::found how)
    {
        auto& folders = talks().folders();
        folders.note(folder_, how);
        // The one that it is in may be gone, too.
        if (how == folder_memory::found::unknown)
            folders.note(bucket_folder(config(), claim_->key()), how);
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
        if (talks().folders().recall(folder) != folder_memory::found::unknown)
            return;
        by.create(folder, {}, node_kind::persistent, then(&create_operation::heard_of_folder, folder));
        talks().folders().note(folder, folder_memory::found::quiet);
    }
    void make_container(requests& by, const std::string& folder)
    {
        by.create(folder, {}, plain_folders_ ? node_kind::persistent : node_kind::container,
            then(&create_operation::heard_of_folder, folder));
    }

    /// What is known of a folder is noted by its own answer, whatever becomes of the node that stands behind it. A
    /// server that puts off what has to wait carries out only the first of a write: each attempt must begin where the
    /// last has ended.
    void heard_of_folder(const reply& got, const std::string& folder)
    {
        auto& folders = talks().folders();
        // Where we may make none it is there, or nothing of ours can be: asking again changes neither.
        const bool is_there = got.ok() || got.what == status::node_exists || got.what == status::access_denied;
        folders.note(folder, is_there ? folder_memory::found::quiet : folder_memory::found::unknown);
        // Any of those that it would be in.
        for (auto end = folder.rfind('/'); got.what == status::no_node && end != 0 && end != std::string::npos;
            end = folder.rfind('/', end - 1))
            folders.note(folder.substr(0, end), folder_memory::found::unknown);
        made_folder(got);
    }

    /// And the node, in one write.
    void make_folder()
    {
        begin_round();
        grants_with_index_ = false;
        // Its answer is not awaited, either.
        if (index_ == index::asked)
            index_ = index::none;
        makes_folder_ = true;
        auto* const by = ask();
        if (!by)
            return;
        make_once(*by, bucket_folder(config(), claim_->key()));
        make_container(*by, folder_);
        make();
    }

    void made_folder(const reply& got)
    {
        if (got.what == status::refused && got.code == unimplemented)
            plain_folders_ = true;
        else if (!got.ok() && got.what != status::node_exists && trouble_.what == status::no_node)
            trouble_ = got;
    }

    void list()
    {
        if (auto* const by = ask())
            by->shared_children(folder_, then(&create_operation::listed));
    }

    void listed(const reply& got)
    {
        auto& state = state_of(*claim_);
        // Others stand behind it: what was lost is looked for as soon as may be.
        if (got.what == status::unanswered && claim_->queues() && !state.node.empty()) {
            begin_anew();
            return;
        }
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        const auto own = state.node.substr(state.node.rfind('/') + 1);
        const auto stands = got.queue(config().layout).find(own, claim_->max_holders());
        switch (stands.what) {
        case standing::kind::absent:
            // Somebody has removed it.
            state.leave(talks());
            state.enter(talks());
            make_folder();
            return;
        case standing::kind::first:
            grant();
            return;
        case standing::kind::behind_one:
            wait_for(watches::of_node(child_path(folder_, stands.blocker)));
            return;
        case standing::kind::behind_some:
            wait_for(watches::of_children(folder_));
            return;
        }
    }

    void grant()
    {
        if (has_worn_number()) {
            leave_worn_folder();
            return;
        }
        if (is_grouped(config(), *claim_) && index_ != index::there) {
            grants_with_index_ = true;
            if (index_ == index::none)
                make_index();
            return;
        }
        auto& state = state_of(*claim_);
        auto bound = talks().bound();
        if (!bound || bound->has_ended(lease_clock::now())) {
            // It will be another one when the session is heard of again; until then the place is kept.
            wait_for(watches::of_node(state.node));
            return;
        }
        // One that is granted again is tied already, and others look at its lease.
        if (claim_->lease().session() != bound)
            claim_->lease().tie(std::move(bound));
        state.granted = true;
        talks().inside().note_granted(state.node);
        state.stop_waiting();
        // Whatever was sent for it before is past: it was sent in this session, or in one that is over.
        if (state.creates.empty())
            claim_->clear_taint();
        end();
        done_(create_outcome::granted(state.fence));
    }

    /// Others may have the same one.
    [[nodiscard]] bool has_worn_number() const
    {
        const auto number = number_of(state_of(*claim_).node);
        return number && !is_sound(*number);
    }

    /// One that is made anew counts from zero. It can be, as soon as nobody stands there: all who come to be the first
    /// leave it.
    void leave_worn_folder()
    {
        if (auto* const by = ask())
            by->remove(state_of(*claim_).node, then(&create_operation::left_worn_folder));
    }

    void left_worn_folder(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        is_worn_ = true;
        auto& state = state_of(*claim_);
        state.leave(talks());
        state.enter(talks());
        if (auto* const by = ask()) {
            by->remove(folder_, replied());
            make_folder();
        }
    }

    void end_without_number()
    {
        const operation_ptr kept(this);
        end();
        failed(delivery::answered, make_failure(errc::unavailable, "the server has numbered as many nodes of this key "
                                                                   "as it can, and begins anew once none is there"));
    }

    void wait_for(std::string blocker)
    {
        if (!claim_->queues()) {
            withdraw();
            return;
        }
        state_of(*claim_).blocker = std::move(blocker);
        end();
        done_(create_outcome::busy());
    }

    /// A single attempt keeps no place.
    void withdraw()
    {
        if (auto* const by = ask())
            by->remove(state_of(*claim_).node, then(&create_operation::withdrawn));
    }

    void withdrawn(const reply& got)
    {
        if (!got.ok() && got.what != status::no_node) {
            end_failed(got);
            return;
        }
        state_of(*claim_).leave(talks());
        end();
        done_(create_outcome::busy());
    }

    void failed(delivery, failure_ptr why) override
    {
        auto& state = state_of(*claim_);
        note_lost_create();
        // A place in the line is something that was carried out.
        const bool has_left_a_trace = !state.node.empty() || !state.creates.empty() || state.indexed;
        if (!has_left_a_trace)
            state.leave(talks());
        else if (why->code == errc::unavailable)
            why = make_failure(errc::outcome_unknown, why->detail, why->cause);
        done_(create_outcome::failed(std::move(why)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const std::string folder_;
    const std::string prefix_;
    int attempts_ = 0;
    int index_attempts_ = 0;
    index index_ = index::none;
    /// It is first in the line, and waits for its index node alone.
    bool grants_with_index_ = false;
    /// Of those that were found, how many are still to be looked at.
    std::size_t left_ = 0;
    bool plain_folders_ = false;
    bool makes_folder_ = false;
    /// The node that it waits for is there still.
    bool has_predecessor_ = false;
    /// Its numbers are used up.
    bool is_worn_ = false;
    /// The line was asked for with the node.
    bool is_listing_ = false;
    /// In which session a node is asked for, without an answer until now; 0: in none.
    remote::connection_number created_in_ = 0;
    /// How many were asked for.
    unsigned creates_ = 0;
    /// Why there is no folder, by the first of those it would be in.
    reply trouble_{.what = status::no_node};
};

} // namespace

operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::zookeeper::detail
