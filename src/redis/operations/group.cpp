// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/group_index.hpp"
#include "redis/operations/lock_rows.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/operations.hpp"
#include "redis/operations/script_operation.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

namespace {

constexpr std::size_t members_per_scan = 500;
/// Maximum number of members that one run of the script handles. A longer run would block the server.
constexpr std::size_t max_members_per_script = 200;
/// Maximum number of members whose scripts are in flight, in a cluster.
constexpr std::size_t max_scripts_in_flight = 10'000;
constexpr std::size_t token_size = token_text::size();

/// \param members each is a token followed by the key of its lock
/// \param index name of the index, or empty if the script does not maintain it
/// \param what check, release or extend
void push_script(boost::redis::request& request, const script& script, script::form form,
    std::span<const std::string> members, const std::string& index, std::string_view what,
    std::chrono::milliseconds ttl)
{
    std::vector<std::string> words{std::to_string(members.size() + (index.empty() ? 0 : 1))};
    std::ranges::transform(
        members, std::back_inserter(words), [](const auto& each) { return each.substr(token_size); });
    if (!index.empty())
        words.push_back(index);
    words.emplace_back(what);
    words.push_back(std::to_string(ttl.count()));
    std::ranges::transform(
        members, std::back_inserter(words), [](const auto& each) { return each.substr(0, token_size); });
    script.push_words(request, form, std::move(words));
}

/// Runs the script for one member of a group, in a cluster.
class member_operation final : public script_operation
{
public:
    using completion = std::function<void(const reply&, failure_ptr)>;

    member_operation(operation_client& owner, const std::string& member, std::string_view what,
        std::chrono::milliseconds ttl, completion done)
        : script_operation(owner), member_(member), what_(what), ttl_(ttl), done_(std::move(done))
    {
        slot = slot_of(std::string_view(member_).substr(token_size));
    }

    [[nodiscard]] bool needs_replicas() const noexcept override { return what_ == "extend"; }

private:
    [[nodiscard]] std::string_view published_key() const noexcept override
    {
        const auto key = std::string_view(member_).substr(token_size + config().prefix.size());
        return what_ == "release" ? key : std::string_view();
    }
    void push(boost::redis::request& request, script::form form) override
    {
        push_script(
            request, owner().publishing_scripts().extend_or_release_members, form, {&member_, 1}, {}, what_, ttl_);
    }
    void answered() override
    {
        done_(replies[0], unconfirmed ? make_failure(errc::outcome_unknown, unconfirmed->detail) : nullptr);
    }
    void failed(delivery, failure_ptr failure) override { done_({}, std::move(failure)); }

    const std::string member_;
    const std::string_view what_;
    const std::chrono::milliseconds ttl_;
    const completion done_;
};

/// Reads the index of a group and then acts on its members in batches. An extension checks all members first.
///
/// In a cluster, each member is sent to the owner of its slot, and all members of a batch are in flight at the same
/// time. The index is written by separate requests: before an extension, and after a release.
class group_operation final : public script_operation
{
public:
    group_operation(operation_client& owner, std::string id, group_action action, std::chrono::milliseconds ttl,
        completion<group_outcome> done)
        : script_operation(owner), id_(std::move(id)), index_(group_key(config(), id_).text()), action_(action),
          ttl_(ttl), done_(std::move(done))
    {
        if (config().cluster())
            slot = slot_of(index_);
    }

    [[nodiscard]] bool needs_replicas() const noexcept override
    {
        return (step_ == step::enter || step_ == step::act) && action_ == group_action::extend;
    }

private:
    enum class step : unsigned char
    {
        read,
        /// Checks that all members can be extended.
        check,
        /// Extends the entries of the next batch, in a cluster.
        enter,
        act,
    };

    void push(boost::redis::request& request, script::form form) override
    {
        if (step_ == step::read) {
            request.push("ZSCAN", index_, cursor_, "COUNT", members_per_scan);
            return;
        }
        if (step_ == step::enter) {
            std::vector<std::string> words{"1", index_};
            for (const auto& each : batch())
                append_entry(words, config(), each, ttl_);
            scripts::get().enter_group.push_words(request, form, std::move(words));
            return;
        }
        push_script(
            request, owner().publishing_scripts().extend_or_release_members, form, batch(), index_, what(), ttl_);
    }

    [[nodiscard]] std::string_view what() const noexcept
    {
        return step_ == step::check ? "check" : action_ == group_action::extend ? "extend" : "release";
    }
    /// The members that the next requests are about.
    [[nodiscard]] std::span<const std::string> batch() const
    {
        // One script extends the entries of a batch in the index.
        const bool is_one_script = !config().cluster() || (action_ == group_action::extend && step_ != step::check);
        const auto limit = is_one_script ? max_members_per_script : max_scripts_in_flight;
        return std::span(members_).subspan(processed_, std::min(members_.size() - processed_, limit));
    }

    void answered() override
    {
        const reply& answer = replies[0];
        const auto answered_step = step_;
        if (unconfirmed)
            continue_after(answered_step, make_failure(errc::outcome_unknown, unconfirmed->detail));
        else if (step_ == step::read)
            continue_after(answered_step, take_page(answer));
        else if (step_ == step::enter)
            continue_after(answered_step, take_entered(answer));
        else
            continue_after(answered_step, take_rows(add_rows(config(), answer, rows_)));
    }

    void continue_after(step answered_step, failure_ptr failure)
    {
        if (failure) {
            finish_failed(std::move(failure));
            return;
        }
        if (answered_step == step::act && processed_ >= members_.size()) {
            done_(std::move(outcome_));
            return;
        }
        // Each request has the full timeout, because the number of members is not limited.
        deadline = {};
        if (config().cluster() && (step_ == step::check || step_ == step::act))
            submit_members();
        else
            resubmit();
    }

    void submit_members()
    {
        const auto members = batch();
        unanswered_ = members.size() + 1;
        found_.clear();
        for (const auto& each : members) {
            // The answer may arrive when the cluster has no other user.
            auto done = [self = boost::intrusive_ptr(this), client = owner().shared_from_this(), &each](
                            const reply& answer, failure_ptr failure) {
                self->member_answered(each, answer, std::move(failure));
            };
            owner().submit(operation_ptr(new member_operation(owner(), each, what(), ttl_, std::move(done))));
        }
        member_ended();
    }
    void member_answered(const std::string& member, const reply& answer, failure_ptr failure)
    {
        const auto before = rows_.size();
        if (!failure)
            failure = add_rows(config(), answer, rows_);
        if (rows_.size() > before)
            found_.push_back(member);
        if (failure && (!member_failure_ || failure->code == errc::outcome_unknown))
            member_failure_ = std::move(failure);
        member_ended();
    }
    void member_ended()
    {
        if (--unanswered_ > 0)
            return;
        if (step_ == step::check)
            std::ranges::move(found_, std::back_inserter(held_));
        else if (action_ == group_action::release)
            leave_in_parts();
        has_changed_ = has_changed_ || (step_ == step::act && !found_.empty());
        const auto answered_step = step_;
        continue_after(answered_step, take_rows(std::exchange(member_failure_, nullptr)));
    }
    /// The entries of other members stay: their locks may be about to be granted.
    void leave_in_parts()
    {
        for (std::span<const std::string> left = found_; !left.empty();) {
            const auto part = left.first(std::min(left.size(), max_members_per_script));
            leave_group(owner(), id_, {part.begin(), part.end()});
            left = left.subspan(part.size());
        }
    }

    /// Returns the reason why the reply cannot be used, or null.
    failure_ptr take_page(const reply& answer)
    {
        if (!answer.is(reply::kind::array) || answer.items.size() != 2)
            return refusal(answer);
        // A cursor is valid only at the server process that has returned it.
        const bool continues = cursor_ == "0" || sent_on == scanned_on_;
        scanned_on_ = sent_on;
        cursor_ = continues ? answer.at(0).text : "0";
        // Members and scores alternate. ZSCAN may return a member twice.
        const auto& items = answer.at(1).items;
        for (std::size_t i = 0; i < items.size(); i += 2) {
            if (is_entry(items[i].text) && seen_.insert(items[i].text).second)
                members_.push_back(items[i].text);
        }
        // The script runs for an empty index as well: ZSCAN may have been answered by a replica with old data, but the
        // script writes, which a replica refuses. In a cluster, a replica answers nothing.
        if (cursor_ == "0" && continues)
            step_ = action_ == group_action::extend ? step::check : step::act;
        return nullptr;
    }

    /// Tells whether a member has the form that colock writes. Another program's set may have the same name.
    [[nodiscard]] bool is_entry(std::string_view member) const noexcept
    {
        return member.size() > token_size && member.substr(token_size).starts_with(config().prefix) &&
               member.substr(0, token_size).find_first_not_of("0123456789abcdef") == member.npos;
    }

    /// Continues with the next batch or step, unless there is a failure. Returns the failure.
    failure_ptr take_rows(failure_ptr failure)
    {
        if (failure)
            return failure;
        const auto rows = std::exchange(rows_, {});
        processed_ += batch().size();
        if (step_ == step::act) {
            outcome_.locks.insert(outcome_.locks.end(), rows.begin(), rows.end());
            has_changed_ = true;
            start_batch();
            return nullptr;
        }
        for (const auto& each : rows) {
            if (!each.remaining)
                return make_failure(errc::invalid_ttl, "the lock " + each.key + " has no ttl");
        }
        if (processed_ >= members_.size()) {
            if (config().cluster())
                members_ = std::exchange(held_, {});
            processed_ = 0;
            start_batch();
        }
        return nullptr;
    }
    void start_batch()
    {
        const bool enters = config().cluster() && action_ == group_action::extend && !members_.empty();
        step_ = enters ? step::enter : step::act;
    }
    failure_ptr take_entered(const reply& answer)
    {
        step_ = step::act;
        return answer.is(reply::kind::number) ? nullptr : refusal(answer);
    }

    void failed(delivery, failure_ptr failure) override { finish_failed(std::move(failure)); }

    /// If some members were already changed, the failure has to be reported as an unknown outcome. The steps before the
    /// first change have no unknown outcome.
    void finish_failed(failure_ptr failure)
    {
        if (has_changed_ && failure->code != errc::outcome_unknown)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        else if (!has_changed_ && step_ != step::act && failure->code == errc::outcome_unknown)
            failure = make_failure(errc::unavailable, failure->detail, failure->cause);
        done_({.error = std::move(failure)});
    }

    const std::string id_;
    const std::string index_;
    const group_action action_;
    const std::chrono::milliseconds ttl_;
    completion<group_outcome> done_;
    step step_ = step::read;
    std::string cursor_ = "0";
    std::set<std::string> seen_;
    /// Each member is a token followed by the key of its lock.
    std::vector<std::string> members_;
    std::size_t processed_ = 0;
    /// True once some members were changed.
    bool has_changed_ = false;
    /// Connection on which the last page of the index was read.
    remote::connection_number scanned_on_ = 0;
    /// Locks that the scripts of the current batch have found.
    std::vector<lock_status> rows_;
    group_outcome outcome_;

    // Only in a cluster.
    /// Number of requests of the current batch that were not answered, plus one while requests are being made.
    std::size_t unanswered_ = 0;
    failure_ptr member_failure_;
    /// The members of the current batch that are held, and those of all batches that were checked.
    std::vector<std::string> found_;
    std::vector<std::string> held_;
};

} // namespace

operation_ptr make_group_action(operation_client& owner, std::string id, group_action action,
    std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    return operation_ptr(new group_operation(owner, std::move(id), action, ttl, std::move(done)));
}

} // namespace colock::inline v0::redis::detail
