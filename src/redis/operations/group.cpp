// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/lock_rows.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/operations.hpp"
#include "redis/operations/script_operation.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

namespace {

constexpr std::size_t members_per_scan = 500;
/// Maximum number of members that one run of the script handles. A longer run would block the server.
constexpr std::size_t max_members_per_script = 200;

/// Reads the index of a group and then acts on its members in batches. An extension checks all members first.
class group_operation final : public script_operation
{
public:
    group_operation(operation_client& owner, std::string id, group_action action, std::chrono::milliseconds ttl,
        completion<group_outcome> done)
        : script_operation(owner), index_(group_key(config(), id).text()), action_(action), ttl_(ttl),
          done_(std::move(done))
    {
    }

    [[nodiscard]] bool needs_replicas() const noexcept override
    {
        return step_ == step::act && action_ == group_action::extend;
    }

private:
    enum class step : unsigned char
    {
        read,
        /// Checks that all members can be extended.
        check,
        act,
    };

    void push(boost::redis::request& request, script::form form) override
    {
        if (step_ == step::read) {
            request.push("ZSCAN", index_, cursor_, "COUNT", members_per_scan);
            return;
        }
        const auto& script = scripts::get().extend_or_release_members;
        const bool whole = form == script::form::whole;
        const auto count = std::min(members_.size() - processed_, max_members_per_script);
        std::vector<std::string> words{
            whole ? std::string(script.text()) : script.digest(), std::to_string(count + 1), index_};
        const auto first = members_.begin() + static_cast<std::ptrdiff_t>(processed_);
        const auto last = first + static_cast<std::ptrdiff_t>(count);
        std::transform(
            first, last, std::back_inserter(words), [](const auto& each) { return each.substr(token_size); });
        words.emplace_back(step_ == step::check ? "check" : action_ == group_action::extend ? "extend" : "release");
        words.push_back(std::to_string(ttl_.count()));
        std::transform(
            first, last, std::back_inserter(words), [](const auto& each) { return each.substr(0, token_size); });
        request.push_range(whole ? "EVAL" : "EVALSHA", words);
    }

    void answered() override
    {
        const bool has_acted = step_ == step::act;
        outcome_.error = step_ == step::read ? take_page(replies[0]) : take_rows(replies[0]);
        if (!outcome_.error && unconfirmed)
            outcome_.error = make_failure(errc::outcome_unknown, unconfirmed->detail);
        if (outcome_.error) {
            finish_failed(std::move(outcome_.error));
            return;
        }
        if (has_acted && processed_ >= members_.size()) {
            done_(std::move(outcome_));
            return;
        }
        // Each request has the full timeout, because the number of members is not limited.
        deadline = {};
        resubmit();
    }

    /// Returns the reason why the reply cannot be used, or null.
    failure_ptr take_page(const reply& answer)
    {
        if (!answer.is(reply::kind::array) || answer.items.size() != 2)
            return refusal(answer);
        cursor_ = answer.at(0).text;
        // Members and scores alternate. ZSCAN may return a member twice.
        const auto& items = answer.at(1).items;
        for (std::size_t i = 0; i < items.size(); i += 2) {
            if (is_entry(items[i].text) && seen_.insert(items[i].text).second)
                members_.push_back(items[i].text);
        }
        // The script runs for an empty index as well: ZSCAN may have been answered by a replica with old data, but the
        // script writes, which a replica refuses.
        if (cursor_ == "0")
            step_ = action_ == group_action::extend ? step::check : step::act;
        return nullptr;
    }

    /// Tells whether a member has the form that colock writes. Another program's set may have the same name.
    [[nodiscard]] bool is_entry(std::string_view member) const noexcept
    {
        return member.size() > token_size && member.substr(token_size).starts_with(config().prefix) &&
               member.substr(0, token_size).find_first_not_of("0123456789abcdef") == member.npos;
    }

    failure_ptr take_rows(const reply& answer)
    {
        std::vector<lock_status> rows;
        if (auto failure = add_rows(config(), answer, rows))
            return failure;
        processed_ += std::min(members_.size() - processed_, max_members_per_script);
        if (step_ == step::act) {
            std::ranges::move(rows, std::back_inserter(outcome_.locks));
            return nullptr;
        }
        for (const auto& each : rows) {
            if (!each.remaining)
                return make_failure(errc::invalid_ttl, "the lock " + each.key + " has no ttl");
        }
        if (processed_ >= members_.size()) {
            step_ = step::act;
            processed_ = 0;
        }
        return nullptr;
    }

    void failed(delivery, failure_ptr failure) override { finish_failed(std::move(failure)); }

    /// If some members were already changed, the failure has to be reported as an unknown outcome.
    void finish_failed(failure_ptr failure)
    {
        if (step_ == step::act && processed_ > 0 && failure->code != errc::outcome_unknown)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        done_({.error = std::move(failure)});
    }

    static constexpr std::size_t token_size = token_text::size();

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
    group_outcome outcome_;
};

} // namespace

operation_ptr make_group_action(operation_client& owner, std::string id, group_action action,
    std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    return operation_ptr(new group_operation(owner, std::move(id), action, ttl, std::move(done)));
}

} // namespace colock::inline v0::redis::detail
