// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/group_index.hpp"
#include "redis/operations/lock_rows.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/operations.hpp"
#include "redis/operations/script_operation.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

namespace {

constexpr std::size_t max_keys_per_script = 200;
constexpr std::size_t max_swept_per_script = 500;
constexpr std::size_t max_removed_per_script = 1000;
/// Maximum number of SCANs of one page or step. If few keys match, the search for the next match could take long.
constexpr std::size_t max_scans = 16;
constexpr std::size_t min_page_size = 256;
constexpr std::size_t max_swept = 1000;

/// Name of the layout, as the inspect script expects it.
std::string_view layout_name(const settings& config) noexcept
{
    return config.plain() ? "plain" : "standard";
}

/// Lists the holders of a key, or removes them.
///
/// A removal lists the holders first and then removes exactly these. A request may be executed long after it was sent,
/// so a holder that came later must not be removed.
class key_operation final : public script_operation
{
public:
    key_operation(operation_client& owner, std::string key, bool removes, completion<list_outcome> done)
        : script_operation(owner), key_(std::move(key)), removes_(removes), done_(std::move(done))
    {
        route_by(key_);
    }

private:
    [[nodiscard]] std::string_view published_key() const noexcept override
    {
        return is_listing() ? std::string_view() : key_;
    }

    void push(boost::redis::request& request, script::form form) override
    {
        const auto key = lock_key(config(), key_);
        if (is_listing()) {
            scripts::get().inspect.push(request, form, 1, key, layout_name(config()), removes_ ? "refuse" : "ignore");
            return;
        }
        std::vector<std::string> words{"1", key.text(), config().group_prefix};
        const auto count = std::min(holders_.size(), max_removed_per_script);
        words.insert(words.end(), holders_.end() - static_cast<std::ptrdiff_t>(count), holders_.end());
        owner().publishing_scripts().break_holders.push_words(request, form, std::move(words));
    }
    void answered() override
    {
        const bool listed = is_listing();
        if (!listed || !removes_)
            outcome_.error = add_rows(config(), replies[0], outcome_.locks);
        else if (!replies[0].is(reply::kind::array))
            outcome_.error = refusal(replies[0]);
        if (outcome_.error) {
            finish_failed(std::move(outcome_.error));
            return;
        }
        if (!listed) {
            leave_groups(replies[0]);
            has_removed_ = true;
            holders_.resize(holders_.size() - std::min(holders_.size(), max_removed_per_script));
        } else if (removes_) {
            for (const auto& row : replies[0].items)
                holders_.push_back(row.at(2).text);
        }
        if (holders_.empty())
            done_(std::move(outcome_));
        else
            resubmit();
    }
    void failed(delivery, failure_ptr failure) override { finish_failed(std::move(failure)); }

    /// In a cluster, removes the holders from the indexes of their groups. On a single server, the script has done so.
    void leave_groups(const reply& removed)
    {
        if (!config().cluster() || config().plain())
            return;
        for (const auto& row : removed.items) {
            const std::string_view value = row.at(2).text;
            const auto group = value.substr(value.rfind('\0') + 1);
            const auto token = value.substr(row.at(1).text == "s" ? 1 : 0, token_text::size());
            if (!group.empty())
                leave_group(owner(), group, {std::string(token) + row.at(0).text});
        }
    }

    /// True until the holders that have to be removed are known.
    [[nodiscard]] bool is_listing() const noexcept { return holders_.empty(); }

    void finish_failed(failure_ptr failure)
    {
        // Listing changes nothing, so its outcome is never unknown. A failure after a partial removal is an unknown
        // outcome.
        if (is_listing() && removes_ && failure->code == errc::outcome_unknown)
            failure = make_failure(errc::unavailable, failure->detail, failure->cause);
        else if (has_removed_ && failure->code != errc::outcome_unknown)
            failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        done_({.error = std::move(failure)});
    }

    const std::string key_;
    const bool removes_;
    completion<list_outcome> done_;
    /// Stored values of the holders that still have to be removed.
    std::vector<std::string> holders_;
    /// True once some holders were removed.
    bool has_removed_ = false;
    list_outcome outcome_;
};

std::string glob_escaped(std::string_view text)
{
    std::string escaped;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^')
            escaped += '\\';
        escaped += c;
    }
    return escaped;
}

/// One page of a list, or one step of a purge.
class walk_operation final : public script_operation
{
public:
    walk_operation(
        operation_client& owner, const listing_request& request, std::uint64_t from, completion<list_outcome> done)
        : script_operation(owner), purges_(request.action == listing_action::purge),
          limit_(std::min(request.limit, max_swept)),
          pattern_(scan_pattern(config(), request.filter.key_prefix.value_or(""))), done_(std::move(done)),
          cursor_(std::to_string(from))
    {
    }

private:
    enum class request_kind : unsigned char
    {
        /// The next keys. A replica answers this, too.
        keys,
        /// The holders of the keys in the batch. With an empty batch this only checks that the server accepts writes.
        holders,
    };

    void push(boost::redis::request& request, script::form form) override
    {
        if (request_kind_ == request_kind::holders)
            push_holders(request, form);
        else if (purges_)
            request.push("SCAN", cursor_, "MATCH", pattern_, "COUNT", keys_per_scan, "TYPE", "zset");
        else
            request.push("SCAN", cursor_, "MATCH", pattern_, "COUNT", keys_per_scan);
    }

    void push_holders(boost::redis::request& request, script::form form)
    {
        const auto& script = purges_ ? scripts::get().purge : scripts::get().inspect;
        // Without keys, the script examines the probe key, which never exists.
        const auto count = std::to_string(std::max<std::size_t>(batch_.size(), 1));
        const auto limit = std::to_string(remaining_limit());
        std::vector<std::string_view> words;
        if (form == script::form::digest)
            words = {"EVALSHA", script.digest(), count};
        else
            words = {"EVAL", script.text(), count};
        words.insert(words.end(), batch_.begin(), batch_.end());
        if (batch_.empty())
            words.push_back(config().probe_key);
        if (purges_)
            words.push_back(limit);
        else
            words.insert(words.end(), {layout_name(config()), "ignore"});
        request.push_range(words.front(), words.begin() + 1, words.end());
    }
    [[nodiscard]] std::size_t remaining_limit() const noexcept
    {
        return std::min(limit_ - std::min(limit_, outcome_.locks.size()), max_swept_per_script);
    }

    void answered() override
    {
        if (request_kind_ == request_kind::holders)
            take_holders(replies[0]);
        else
            outcome_.error = take_keys(replies[0]);
        if (outcome_.error || is_complete()) {
            done_(std::move(outcome_));
            return;
        }
        prepare_next_request();
        // Each request has the full timeout, because the number of keys is not limited.
        deadline = {};
        resubmit();
    }

    /// Returns the reason why the reply cannot be used, or null.
    failure_ptr take_keys(const reply& answer)
    {
        if (!answer.is(reply::kind::array) || answer.items.size() != 2)
            return refusal(answer);
        page_cursor_ = std::exchange(cursor_, answer.at(0).text);
        ++scans_;
        for (const auto& key : answer.at(1).items)
            page_.push_back(key.text);
        // SCAN may return a key twice.
        std::ranges::sort(page_);
        const auto duplicates = std::ranges::unique(page_);
        page_.erase(duplicates.begin(), duplicates.end());
        return nullptr;
    }
    void take_holders(const reply& answer)
    {
        const auto limit = remaining_limit(), before = outcome_.locks.size();
        outcome_.error = add_rows(config(), answer, outcome_.locks);
        // More holders of these keys may have expired than one script removes.
        if (!purges_ || outcome_.locks.size() - before < limit)
            batch_.clear();
    }

    [[nodiscard]] bool is_complete()
    {
        if (request_kind_ == request_kind::keys)
            return false;
        const bool is_page_done = page_.empty() && batch_.empty();
        if (purges_ && outcome_.locks.size() >= limit_) {
            // The next step scans the remaining keys of this page again.
            if (!is_page_done || cursor_ != "0")
                outcome_.next = is_page_done ? cursor_ : page_cursor_;
            return true;
        }
        if (!is_page_done || (cursor_ != "0" && scans_ < max_scans && outcome_.locks.size() < min_page_size))
            return false;
        if (cursor_ != "0")
            outcome_.next = cursor_;
        return true;
    }

    void prepare_next_request()
    {
        const bool is_page_done = page_.empty() && batch_.empty();
        request_kind_ =
            is_page_done && request_kind_ == request_kind::holders ? request_kind::keys : request_kind::holders;
        if (!batch_.empty())
            return;
        const auto taken = std::min(page_.size(), max_keys_per_script);
        batch_.assign(std::make_move_iterator(page_.end() - static_cast<std::ptrdiff_t>(taken)),
            std::make_move_iterator(page_.end()));
        page_.resize(page_.size() - taken);
    }

    void failed(delivery, failure_ptr failure) override
    {
        outcome_.error = std::move(failure);
        done_(std::move(outcome_));
    }

    const bool purges_;
    /// Maximum number of entries that are removed.
    const std::size_t limit_;
    const std::string pattern_;
    completion<list_outcome> done_;
    request_kind request_kind_ = request_kind::keys;
    std::string cursor_;
    /// Cursor of the SCAN that has returned the current keys.
    std::string page_cursor_;
    std::size_t scans_ = 0;
    std::vector<std::string> page_;
    std::vector<std::string> batch_;
    list_outcome outcome_;
};

class key_purge_operation final : public script_operation
{
public:
    key_purge_operation(
        operation_client& owner, const std::string& key, std::size_t limit, completion<list_outcome> done)
        : script_operation(owner), key_(lock_key(config(), key).text()), limit_(std::min(limit, max_swept_per_script)),
          done_(std::move(done))
    {
        route_by(key);
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        scripts::get().purge.push(request, form, 1, key_, limit_);
    }
    void answered() override
    {
        list_outcome outcome;
        outcome.error = add_rows(config(), replies[0], outcome.locks);
        done_(std::move(outcome));
    }
    void failed(delivery, failure_ptr failure) override { done_({.error = std::move(failure)}); }

    const std::string key_;
    const std::size_t limit_;
    completion<list_outcome> done_;
};

} // namespace

std::string scan_pattern(const settings& config, std::string_view key_prefix)
{
    return glob_escaped(config.prefix + std::string(key_prefix)) + '*';
}

operation_ptr make_key_purge(
    operation_client& owner, const std::string& key, std::size_t limit, completion<list_outcome> done)
{
    return operation_ptr(new key_purge_operation(owner, key, limit, std::move(done)));
}

operation_ptr make_listing(
    operation_client& owner, listing_request request, std::uint64_t from, completion<list_outcome> done)
{
    if (request.filter.key)
        return operation_ptr(new key_operation(
            owner, *std::move(request.filter.key), request.action == listing_action::break_key, std::move(done)));
    return operation_ptr(new walk_operation(owner, request, from, std::move(done)));
}

} // namespace colock::inline v0::redis::detail
