// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/requests.hpp"

#include "zookeeper/recipe/transactions.hpp"
#include "zookeeper/url.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Maximum size of a request: a quarter of what a server accepts by default. A server closes the connection, which all
/// requests share, if a request is too large.
constexpr std::size_t max_request_size = std::size_t{256} * 1024;

/// Maximum number of requests that one handler sends, because the driver takes some microseconds for each.
constexpr std::ptrdiff_t max_sent_per_flush = 256;

/// Returns the outcome of a transaction as the reply to one of its members.
reply outcome_only(const reply& reply)
{
    return {.outcome = reply.outcome, .code = reply.code};
}

} // namespace

/// Requests that are sent as one transaction, and their completions.
class requests::batch
{
public:
    batch(std::int64_t session, std::size_t members) : session_(session)
    {
        members_.reserve(members);
        changes_.reserve(2 * members);
    }

    void add(pending_request& each)
    {
        members_.push_back({.first = changes_.size(), .type = each.type, .done = std::move(each.driver_request->done)});
        if (each.type == kind::leave) {
            changes_.push_back({.type = change::kind::remove, .path = std::move(each.path)});
            return;
        }
        changes_.push_back({.type = change::kind::create,
            .path = each.path + '/' + each.name,
            .data = std::move(each.data),
            .lifetime = node_kind::ephemeral_sequential});
        // The reply to this write contains the number of nodes in the folder and the number of the transaction.
        changes_.push_back({.type = change::kind::write, .path = std::move(each.path)});
    }
    [[nodiscard]] std::vector<change> take_changes() noexcept { return std::exchange(changes_, {}); }

    void operator()(reply transaction_reply)
    {
        if (transaction_reply.ok())
            complete_successful(transaction_reply);
        else if (transaction_reply.outcome < status::unsent)
            complete_failed(transaction_reply);
        else
            for (auto& each : members_)
                complete(each, outcome_only(transaction_reply));
    }

private:
    struct member
    {
        /// Index of the first change of this member.
        std::size_t first;
        kind type;
        reply_handler done;
    };

    static void complete(member& receiver, reply reply)
    {
        if (receiver.done)
            receiver.done(std::move(reply));
    }
    void complete_successful(reply& transaction_reply)
    {
        for (auto& each : members_) {
            reply own{.outcome = status::ok};
            if (each.type == kind::enter) {
                const auto& folder = transaction_reply.members[each.first + 1].stat;
                own.text = std::move(transaction_reply.members[each.first].text);
                own.stat = {.created_in = folder.modified_in, .ephemeral_owner = session_};
                own.child_count = folder.children;
            }
            complete(each, std::move(own));
        }
    }
    void complete_failed(const reply& transaction_reply)
    {
        std::vector<int> codes;
        for (const auto& each : transaction_reply.members)
            codes.push_back(each.code);
        const auto failed_member = outcome_of(transaction_reply.code, codes).failed_member;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const auto end = i + 1 < members_.size() ? members_[i + 1].first : codes.size();
            if (failed_member && *failed_member >= members_[i].first && *failed_member < end)
                complete(members_[i], outcome_only(transaction_reply.members[*failed_member]));
            else if (members_.size() == 1)
                complete(members_[i], outcome_only(transaction_reply));
            else
                complete(members_[i], {.outcome = status::batch_aborted});
        }
    }

    const std::int64_t session_;
    std::vector<change> changes_;
    std::vector<member> members_;
};

void requests::submit(pending_request pending, reply_handler done)
{
    constexpr std::array write_types{kind::enter, kind::leave, kind::create, kind::remove, kind::write, kind::multi};
    const bool writes = std::ranges::find(write_types, pending.type) != write_types.end();
    pending.driver_request = std::make_unique<request>(std::move(done), writes);
    std::size_t size = pending.path.size() + pending.name.size() + pending.data.size();
    for (const auto& each : pending.changes)
        size += each.path.size() + each.data.size();
    if (size > max_request_size)
        refuse(std::move(pending.driver_request), status::refused);
    else if (transport_.take_request())
        waiting_.push_back(std::move(pending));
    else
        refuse(std::move(pending.driver_request), status::unsent);
}

void requests::refuse(std::unique_ptr<request> request, status outcome)
{
    request->answer.outcome = outcome;
    transport_.complete_later(std::move(request));
}

void requests::refuse_unsent()
{
    for (auto& each : std::exchange(waiting_, {}))
        refuse(std::move(each.driver_request), status::unsent);
    waiting_list_count_ = 0;
    for (auto& [path, list] : lists_) {
        for (auto& each : std::exchange(list.waiting, {}))
            refuse(std::move(each), status::unsent);
    }
    std::erase_if(lists_, [](const auto& each) { return !each.second.is_in_flight; });
    recent_lists_.clear();
}

void requests::shared_children(const std::string& path, reply_handler done)
{
    auto new_request = std::make_unique<request>(std::move(done), false);
    if (path.size() > max_request_size)
        return refuse(std::move(new_request), status::refused);
    if (!transport_.take_request())
        return refuse(std::move(new_request), status::unsent);
    auto& list = lists_[path];
    if (list.waiting.empty() && !list.is_in_flight)
        ++waiting_list_count_;
    list.waiting.push_back(std::move(new_request));
}

void requests::send_lists(zk_client& driver)
{
    if (waiting_list_count_ == 0)
        return;
    waiting_list_count_ = 0;
    for (auto& [path, list] : lists_) {
        if (list.waiting.empty() || std::exchange(list.is_in_flight, true))
            continue;
        // The lambda may capture `this`: the session owns this object, and calls completions only while it exists.
        auto handler = [this, folder = path, waiting = std::exchange(list.waiting, {})](
                           const reply& reply) mutable { list_answered(folder, std::move(waiting), reply); };
        driver.children(path, false, std::make_unique<request>(std::move(handler), false));
    }
}

/// If several callers share the list, they are completed in later handlers, so that many callers do not block the event
/// loop.
void requests::list_answered(const std::string& path, std::vector<std::unique_ptr<request>> waiting, const reply& reply)
{
    recent_lists_.note(path, reply, lease_clock::now());
    const auto found = lists_.find(path);
    found->second.is_in_flight = false;
    if (found->second.waiting.empty()) {
        lists_.erase(found);
    } else if (transport_.take_request()) {
        ++waiting_list_count_;
    } else {
        for (auto& each : std::exchange(found->second.waiting, {}))
            refuse(std::move(each), status::unsent);
        lists_.erase(found);
    }
    if (waiting.size() == 1) {
        if (waiting.front()->done)
            waiting.front()->done(reply);
        return;
    }
    for (auto& each : waiting) {
        each->answer = reply;
        transport_.complete_later(std::move(each));
    }
}

bool requests::flush()
{
    if (empty())
        return false;
    auto* const driver = transport_.sender();
    if (!driver) {
        refuse_unsent();
        return false;
    }
    auto all = std::exchange(waiting_, {});
    if (std::ssize(all) > max_sent_per_flush) {
        const auto rest = all.begin() + max_sent_per_flush;
        waiting_.assign(std::move_iterator(rest), std::move_iterator(all.end()));
        all.erase(rest, all.end());
    }
    send_batches(*driver, all);
    for (auto& each : all) {
        if (!is_batchable(each))
            send(*driver, each);
    }
    all.clear();
    if (!waiting_.empty())
        return true;
    waiting_ = std::move(all);
    // A list must see the effects of every request that was made before it.
    send_lists(*driver);
    return false;
}

driver_report_list requests::take_unsent() noexcept
{
    driver_report_list all;
    for (auto& each : waiting_)
        all.push_back(*each.driver_request.release());
    waiting_.clear();
    for (auto& [path, list] : lists_) {
        for (auto& each : list.waiting)
            all.push_back(*each.release());
        list.waiting.clear();
    }
    waiting_list_count_ = 0;
    return all;
}

bool requests::is_batchable(const pending_request& pending) noexcept
{
    return pending.type == kind::enter || pending.type == kind::leave;
}

void requests::send_batches(zk_client& driver, std::vector<pending_request>& all)
{
    if (all.size() == 1 && is_batchable(all.front())) {
        send_batch(driver, all, std::array{std::size_t{0}});
        return;
    }
    std::vector<std::size_t> indexes;
    std::vector<batch_item> items;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& each = all[i];
        if (!is_batchable(each))
            continue;
        const bool enters = each.type == kind::enter;
        indexes.push_back(i);
        items.push_back({.parent = each.path,
            .creates = enters,
            .operations = enters ? std::size_t{2} : std::size_t{1},
            .bytes = 2 * each.path.size() + each.name.size() + each.data.size(),
            .is_alone = each.batching_mode == batching::forbidden});
    }
    for (auto& members : make_batches(items)) {
        for (auto& each : members)
            each = indexes[each];
        send_batch(driver, all, members);
    }
}

void requests::send_batch(zk_client& driver, std::vector<pending_request>& all, std::span<const std::size_t> members)
{
    auto& first = all[members.front()];
    if (members.size() == 1 && first.type == kind::leave) {
        driver.remove(first.path, std::move(first.driver_request));
        return;
    }
    batch joined(driver.session_id(), members.size());
    for (const auto i : members)
        joined.add(all[i]);
    const auto changes = joined.take_changes();
    auto driver_request = std::make_unique<request>(std::move(joined), true);
    driver_request->size = static_cast<int>(members.size());
    driver.multi(changes, std::move(driver_request));
}

void requests::send(zk_client& driver, pending_request& pending)
{
    auto& request = pending.driver_request;
    switch (pending.type) {
    case kind::create:
        driver.create(pending.path, pending.data, pending.lifetime, std::move(request));
        return;
    case kind::remove:
        driver.remove(pending.path, std::move(request));
        return;
    case kind::write:
        driver.write(pending.path, pending.data, std::move(request));
        return;
    case kind::read:
    case kind::read_and_watch:
        driver.read(pending.path, pending.type == kind::read_and_watch, std::move(request));
        return;
    case kind::children:
    case kind::children_and_watch:
        driver.children(pending.path, pending.type == kind::children_and_watch, std::move(request));
        return;
    case kind::exists:
        driver.exists(pending.path, std::move(request));
        return;
    case kind::multi:
        driver.multi(pending.changes, std::move(request));
        return;
    case kind::enter:
    case kind::leave:
        return;
    }
}

void requests::enter(
    const std::string& folder, std::string_view name, std::string_view data, batching batching_mode, reply_handler done)
{
    submit({.type = kind::enter,
               .batching_mode = batching_mode,
               .path = folder,
               .name = std::string(name),
               .data = std::string(data)},
        std::move(done));
}

void requests::leave(const std::string& path, batching batching_mode, reply_handler done)
{
    submit({.type = kind::leave, .batching_mode = batching_mode, .path = path}, std::move(done));
}

void requests::create(const std::string& path, std::string_view data, node_kind lifetime, reply_handler done)
{
    submit({.type = kind::create, .lifetime = lifetime, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::remove(const std::string& path, reply_handler done)
{
    submit({.type = kind::remove, .path = path}, std::move(done));
}

void requests::write(const std::string& path, std::string_view data, reply_handler done)
{
    submit({.type = kind::write, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::read(const std::string& path, reply_handler done)
{
    submit({.type = kind::read, .path = path}, std::move(done));
}

void requests::read_and_watch(const std::string& path, reply_handler done)
{
    submit({.type = kind::read_and_watch, .path = path}, std::move(done));
}

void requests::children(const std::string& path, reply_handler done)
{
    submit({.type = kind::children, .path = path}, std::move(done));
}

void requests::children_and_watch(const std::string& path, reply_handler done)
{
    // The lambda may capture `this`, as in `send_lists`.
    submit({.type = kind::children_and_watch, .path = path},
        [this, folder = path, then = std::move(done)](reply reply) mutable {
            recent_lists_.note(folder, reply, lease_clock::now());
            then(std::move(reply));
        });
}

void requests::exists(const std::string& path, reply_handler done)
{
    submit({.type = kind::exists, .path = path}, std::move(done));
}

void requests::sync(const std::string& path, reply_handler done)
{
    multi({{.type = change::kind::check, .path = path}}, std::move(done));
}

void requests::multi(std::vector<change> changes, reply_handler done)
{
    // If a path is not valid, the driver frees memory that it has not allocated.
    const bool are_valid_paths = std::ranges::all_of(changes, [](const change& each) { return is_path(each.path); });
    if (changes.empty() || !are_valid_paths)
        refuse(std::make_unique<request>(std::move(done), false), status::refused);
    else
        submit({.type = kind::multi, .changes = std::move(changes)}, std::move(done));
}

void make_nodes(requests& sender, const std::string& path)
{
    const auto make = [&](const std::string& node) { sender.create(node, {}, node_kind::persistent, reply_handler()); };
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        make(path.substr(0, end));
    make(path);
}

} // namespace colock::inline v0::zookeeper::detail
