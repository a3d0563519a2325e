// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/cluster_listing.hpp"

#include "redis/cluster/node_command.hpp"
#include "redis/failures.hpp"
#include "redis/operations/operations.hpp"
#include "util/cursor.hpp"

#include <algorithm>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

namespace {

/// Limits of one page or step, as those of a single server.
constexpr std::size_t max_scans = 16;
constexpr std::size_t min_page_size = 256;
constexpr std::size_t max_purged = 1000;

using slot_set = std::bitset<slot_count>;

/// The position of a page: `scan/node/first-last,first-last...`, where `scan` is the cursor of the node's SCAN.
struct position
{
    std::string scan = "0";
    std::string node{};
    /// The slots whose locks were listed.
    slot_set listed{};
};

std::optional<slot_set> parse_ranges(std::string_view text)
{
    slot_set result;
    while (!text.empty()) {
        const auto range = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), range.size() + 1));
        const auto dash = range.find('-');
        if (dash == range.npos)
            return std::nullopt;
        const auto first = colock::detail::read_number(range.substr(0, dash));
        const auto last = colock::detail::read_number(range.substr(dash + 1));
        if (!first || !last || *first > *last || *last >= slot_count)
            return std::nullopt;
        for (auto slot = *first; slot <= *last; ++slot)
            result.set(slot);
    }
    return result;
}

std::optional<position> parse_position(std::string_view text)
{
    if (text.empty())
        return position{};
    const auto node = text.find('/');
    const auto ranges = text.rfind('/');
    if (node == text.npos || node == ranges)
        return std::nullopt;
    auto listed = parse_ranges(text.substr(ranges + 1));
    if (!listed || !colock::detail::read_number(text.substr(0, node)))
        return std::nullopt;
    return position{std::string(text.substr(0, node)), std::string(text.substr(node + 1, ranges - node - 1)), *listed};
}

std::string to_text(const position& at)
{
    auto text = at.scan + '/' + at.node + '/';
    for (std::size_t first = 0; first < slot_count; ++first) {
        if (!at.listed[first])
            continue;
        auto last = first;
        while (last + 1 < slot_count && at.listed[last + 1])
            ++last;
        (((text += text.back() == '/' ? "" : ",") += std::to_string(first)) += '-') += std::to_string(last);
        first = last;
    }
    return text;
}

class cluster_listing final : public std::enable_shared_from_this<cluster_listing>
{
public:
    cluster_listing(std::shared_ptr<cluster> masters, const listing_request& request, completion<list_outcome> done)
        : masters_(std::move(masters)), purges_(request.action == listing_action::purge),
          limit_(std::min(request.limit, max_purged)), key_prefix_(request.filter.key_prefix.value_or("")),
          done_(std::move(done)), at_(parse_position(request.cursor).value_or(position()))
    {
    }

    void start()
    {
        masters_->request_map([self = shared_from_this()](failure_ptr failure) {
            if (failure)
                self->finish(std::move(failure));
            else
                self->choose_node();
        });
    }

private:
    void choose_node()
    {
        std::size_t slot = 0;
        while (slot < slot_count && at_.listed[slot])
            ++slot;
        if (slot == slot_count) {
            at_ = {};
            is_complete_ = true;
            finish(nullptr);
            return;
        }
        node_ = masters_->client_for(static_cast<slot_number>(slot));
        if (!node_)
            return; // The context has shut down.
        owned_ = masters_->slots_of(*node_);
        if (auto address = remote::to_text(node_->node()); address != at_.node) {
            at_.node = std::move(address);
            at_.scan = "0";
        }
        scan();
    }

    void scan()
    {
        const auto& config = node_->config();
        std::vector<std::string> words{
            "SCAN", at_.scan, "MATCH", scan_pattern(config, key_prefix_), "COUNT", std::to_string(keys_per_scan)};
        if (purges_)
            words.insert(words.end(), {"TYPE", "zset"});
        ++scans_;
        node_->enqueue(make_node_command(
            *node_, std::move(words), {}, [self = shared_from_this()](const reply& answer, failure_ptr failure) {
                self->scanned(answer, std::move(failure));
            }));
    }

    void scanned(const reply& answer, failure_ptr failure)
    {
        if (!failure && (!answer.is(reply::kind::array) || answer.items.size() != 2))
            failure = refusal(answer);
        if (failure) {
            finish(std::move(failure));
            return;
        }
        next_scan_ = answer.at(0).text;
        std::vector<std::string> keys;
        const auto& prefix = node_->config().prefix;
        for (const auto& each : answer.at(1).items) {
            // A key of a slot that another node owns is moving to this node or away from it.
            const auto slot = slot_of(each.text);
            if (each.text.starts_with(prefix) && !(at_.listed[slot] && masters_->client_for(slot) == node_))
                keys.push_back(each.text.substr(prefix.size()));
        }
        // SCAN may return a key twice.
        std::ranges::sort(keys);
        const auto duplicates = std::ranges::unique(keys);
        keys.erase(duplicates.begin(), duplicates.end());
        examine(keys);
    }

    /// Asks for the holders of these keys. Each request goes to the owner of its key's slot.
    void examine(const std::vector<std::string>& keys)
    {
        pending_ = keys.size() + 1;
        for (const auto& key : keys) {
            auto add = [self = shared_from_this()](list_outcome found) { self->examined(std::move(found)); };
            node_->submit(purges_ ? make_key_purge(*node_, key, limit_, std::move(add))
                                  : make_listing(*node_, {.filter = {.key = key}}, 0, std::move(add)));
        }
        examined({});
    }

    void examined(list_outcome found)
    {
        outcome_.locks.insert(outcome_.locks.end(), std::make_move_iterator(found.locks.begin()),
            std::make_move_iterator(found.locks.end()));
        if (found.error)
            outcome_.error = std::move(found.error);
        if (--pending_ > 0)
            return;
        if (outcome_.error) {
            finish(std::move(outcome_.error));
            return;
        }
        // A purge repeats the SCAN if it may have left some expired holders.
        if (purges_ && outcome_.locks.size() >= limit_) {
            finish(nullptr);
            return;
        }
        at_.scan = next_scan_;
        if (at_.scan == "0") {
            // The locks of a slot that has arrived or left during the scan may be missing.
            at_.listed |= owned_ & masters_->slots_of(*node_);
            at_.node.clear();
        }
        if (scans_ >= max_scans || outcome_.locks.size() >= min_page_size)
            finish(nullptr);
        else
            choose_node();
    }

    void finish(failure_ptr failure)
    {
        outcome_.error = std::move(failure);
        if (!outcome_.error && !is_complete_ && !at_.listed.all())
            outcome_.next = to_text(at_);
        done_(std::move(outcome_));
    }

    const std::shared_ptr<cluster> masters_;
    const bool purges_;
    const std::size_t limit_;
    const std::string key_prefix_;
    completion<list_outcome> done_;
    position at_;
    std::shared_ptr<client> node_;
    /// The slots that the node had when its scan, or this page, began.
    slot_set owned_;
    std::string next_scan_;
    std::size_t scans_ = 0;
    /// Number of requests that are not answered, plus one while requests are being made.
    std::size_t pending_ = 0;
    bool is_complete_ = false;
    list_outcome outcome_;
};

} // namespace

void start_cluster_listing(
    std::shared_ptr<cluster> masters, client& seed, const listing_request& request, completion<list_outcome> done)
{
    auto listing = std::make_shared<cluster_listing>(std::move(masters), request, std::move(done));
    seed.on_strand(seed, [listing = std::move(listing)](client&) { listing->start(); });
}

bool is_cluster_cursor(std::string_view text)
{
    return parse_position(text).has_value();
}

} // namespace colock::inline v0::redis::detail
