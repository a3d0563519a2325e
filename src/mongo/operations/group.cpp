// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/joined_update.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/query.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

namespace {

/// Documents of one page.
constexpr std::int64_t page_size = 256;
constexpr std::size_t statements_per_command = 100;

/// All that is done to one group: told when the last part has ended. Belongs to the strand.
class tally
{
public:
    tally(std::size_t parts, completion<group_outcome> done) : left_(parts), done_(std::move(done)) {}

    /// \param why null: it was done, or, without a status, there was nothing to do.
    void add(std::optional<lock_status> what, failure_ptr why)
    {
        if (what)
            outcome_.locks.push_back(std::move(*what));
        if (why && (!outcome_.error || why->code == errc::outcome_unknown))
            outcome_.error = std::move(why);
        if (--left_ > 0)
            return;
        // What was done in parts is no failure that has changed nothing.
        if (outcome_.error && !outcome_.locks.empty() && outcome_.error->code != errc::outcome_unknown)
            outcome_.error = make_failure(errc::outcome_unknown, outcome_.error->detail, outcome_.error->cause);
        if (outcome_.error)
            outcome_.locks.clear();
        done_(std::move(outcome_));
    }

private:
    std::size_t left_;
    group_outcome outcome_;
    completion<group_outcome> done_;
};

/// Looks for the members. What gives them back travels together; what extends them does, too, and then they are looked
/// at again.
class group_operation final : public command_operation
{
public:
    group_operation(
        client& owner, std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done)
        : command_operation(owner), filter_{.group = std::move(id)}, what_(what), ttl_(ttl), done_(std::move(done))
    {
    }

private:
    void begin() override
    {
        members_.clear();
        found_.clear();
        done_with_ = 0;
        greet([this] { look(&group_operation::act); });
    }
    void look(void (group_operation::*then)())
    {
        found_.clear();
        from_ = page_start({});
        looked_ = then;
        next_page();
    }
    [[nodiscard]] std::int64_t now() const noexcept { return talks().clock().at(lease_clock::now()); }
    void next_page()
    {
        ask(find_command(config(), list_query(filter_, from_, now()), page_size), &group_operation::found);
    }
    void found(const answer& got)
    {
        std::int64_t count = 0;
        for_each_document(got.reply, [&](const bson_iter_t& each) {
            ++count;
            from_.move_behind(key_of(each));
            for (auto& holder : read_known_holders(each, holders::live, now())) {
                if (filter_.matches(holder.status))
                    found_.push_back(std::move(holder));
            }
        });
        // Behind the last text comes what is none.
        if (may_go_on(got.reply, count, page_size) || from_.skip_text())
            next_page();
        else
            confirm_read(&group_operation::confirmed);
    }
    void confirmed(const answer&) { (this->*looked_)(); }
    void over(group_outcome outcome)
    {
        end();
        done_(std::move(outcome));
    }
    void act()
    {
        members_ = std::move(found_);
        if (members_.empty())
            over({});
        else if (what_ == group_action::extend)
            extend();
        else
            release();
    }

    void extend()
    {
        const auto eternal = std::ranges::find_if(members_, [](const auto& each) { return !each.status.remaining; });
        if (eternal != members_.end())
            over({.error = make_failure(errc::invalid_ttl, "the lock " + eternal->status.key + " has no ttl")});
        else
            lengthen_next();
    }
    void lengthen_next()
    {
        const auto& every = commands::get();
        joined_update made(config());
        for (; done_with_ < members_.size() && made.size() < statements_per_command; ++done_with_) {
            const auto& each = members_[done_with_];
            const auto& which =
                each.status.mode == lock_mode::shared ? every.lengthen_shared : every.lengthen_exclusive;
            made.add([&](bson_t& to) {
                which.append_to(
                    to, {{"k", bytes{each.status.key}}, {"t", std::string_view(each.token)}, {"x", ttl_value(ttl_)}});
            });
        }
        may_have_extended_ = true;
        ask(made.take(), &group_operation::lengthened);
    }
    void lengthened(const answer&)
    {
        if (done_with_ < members_.size())
            lengthen_next();
        else
            look(&group_operation::tell_extended);
    }
    /// Who is held still has been extended, as it was before.
    void tell_extended()
    {
        std::set<std::string> held;
        for (auto& each : found_)
            held.insert(std::move(each.token));
        group_outcome outcome;
        for (auto& each : members_) {
            if (held.contains(each.token))
                outcome.locks.push_back(std::move(each.status));
        }
        over(std::move(outcome));
    }

    void release()
    {
        const operation_ptr kept(this);
        end();
        const auto all = std::make_shared<tally>(members_.size(), std::move(done_));
        for (const auto& each : members_)
            owner_->submit(release_of(each, all));
    }
    [[nodiscard]] operation_ptr release_of(const known_holder& member, const std::shared_ptr<tally>& all) const
    {
        return make_release_of(*owner_, member, [all, status = member.status](release_outcome outcome) mutable {
            if (outcome.status == release_status::released)
                all->add(std::move(status), nullptr);
            else
                all->add(std::nullopt, std::move(outcome.error));
        });
    }
    void failed(delivery, failure_ptr why) override
    {
        // What was done in parts is no failure that has changed nothing.
        if (may_have_extended_ && why->code != errc::outcome_unknown)
            why = make_failure(errc::outcome_unknown, why->detail, why->cause);
        done_({.error = std::move(why)});
    }

    const filter filter_;
    const group_action what_;
    const std::chrono::milliseconds ttl_;
    completion<group_outcome> done_;
    page_start from_;
    std::vector<known_holder> found_;
    void (group_operation::*looked_)() = nullptr;
    std::vector<known_holder> members_;
    std::size_t done_with_ = 0;
    /// A statement that extends a lock was sent, in this attempt or in one before it.
    bool may_have_extended_ = false;
};

} // namespace

operation_ptr make_group_action(
    client& owner, std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    return operation_ptr(new group_operation(owner, std::move(id), what, ttl, std::move(done)));
}

} // namespace colock::mongo::detail
