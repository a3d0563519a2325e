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
reply outcome_only(const reply& got)
{
    return {.what = got.what, .code = got.code};
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
        members_.push_back({.first = changes_.size(), .what = each.what, .done = std::move(each.driver_request->done)});
        if (each.what == kind::leave) {
            changes_.push_back({.what = change::kind::remove, .path = std::move(each.path)});
            return;
        }
        changes_.push_back({.what = change::kind::create,
            .path = each.path + '/' + each.name,
            .data = std::move(each.data),
            .lifetime = node_kind::ephemeral_sequential});
        // The reply to this write contains the number of nodes in the folder and the number of the transaction.
        changes_.push_back({.what = change::kind::write, .path = std::move(each.path)});
    }
    [[nodiscard]] std::vector<change> take_changes() noexcept { return std::exchange(changes_, {}); }

    void operator()(reply got)
    {
        if (got.ok())
            complete_successful(got);
        else if (got.what < status::unsent)
            complete_failed(got);
        else
            for (auto& each : members_)
                complete(each, outcome_only(got));
    }

private:
    struct member
    {
        /// Index of the first change of this member.
        std::size_t first;
        kind what;
        reply_handler done;
    };

    static void complete(member& which, reply answer)
    {
        if (which.done)
            which.done(std::move(answer));
    }
    void complete_successful(reply& got)
    {
        for (auto& each : members_) {
            reply own{.what = status::ok};
            if (each.what == kind::enter) {
                const auto& folder = got.members[each.first + 1].stat;
                own.text = std::move(got.members[each.first].text);
                own.stat = {.created_in = folder.modified_in, .ephemeral_owner = session_};
                own.child_count = folder.children;
            }
            complete(each, std::move(own));
        }
    }
    void complete_failed(const reply& got)
    {
        std::vector<int> codes;
        for (const auto& each : got.members)
            codes.push_back(each.code);
        const auto failed_member = outcome_of(got.code, codes).failed_member;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const auto end = i + 1 < members_.size() ? members_[i + 1].first : codes.size();
            if (failed_member && *failed_member >= members_[i].first && *failed_member < end)
                complete(members_[i], outcome_only(got.members[*failed_member]));
            else if (members_.size() == 1)
                complete(members_[i], outcome_only(got));
            else
                complete(members_[i], {.what = status::batch_aborted});
        }
    }

    const std::int64_t session_;
    std::vector<change> changes_;
    std::vector<member> members_;
};

void requests::submit(pending_request added, reply_handler done)
{
    constexpr std::array writing{kind::enter, kind::leave, kind::create, kind::remove, kind::write, kind::multi};
    const bool writes = std::ranges::find(writing, added.what) != writing.end();
    added.driver_request = std::make_unique<request>(std::move(done), writes);
    std::size_t size = added.path.size() + added.name.size() + added.data.size();
    for (const auto& each : added.changes)
        size += each.path.size() + each.data.size();
    if (size > max_request_size)
        refuse(std::move(added.driver_request), status::refused);
    else if (transport_.take_request())
        waiting_.push_back(std::move(added));
    else
        refuse(std::move(added.driver_request), status::unsent);
}

void requests::refuse(std::unique_ptr<request> unsent, status why)
{
    unsent->answer.what = why;
    transport_.complete_later(std::move(unsent));
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
    auto added = std::make_unique<request>(std::move(done), false);
    if (path.size() > max_request_size)
        return refuse(std::move(added), status::refused);
    if (!transport_.take_request())
        return refuse(std::move(added), status::unsent);
    auto& list = lists_[path];
    if (list.waiting.empty() && !list.is_in_flight)
        ++waiting_list_count_;
    list.waiting.push_back(std::move(added));
}

void requests::send_lists(zk_client& by)
{
    if (waiting_list_count_ == 0)
        return;
    waiting_list_count_ = 0;
    for (auto& [path, list] : lists_) {
        if (list.waiting.empty() || std::exchange(list.is_in_flight, true))
            continue;
        // The lambda may capture `this`: the session owns this object, and calls completions only while it exists.
        auto answered = [this, folder = path, waiting = std::exchange(list.waiting, {})](
                            const reply& got) mutable { list_answered(folder, std::move(waiting), got); };
        by.children(path, false, std::make_unique<request>(std::move(answered), false));
    }
}

/// If several callers share the list, they are completed in later handlers, so that many callers do not block the event
/// loop.
void requests::list_answered(const std::string& path, std::vector<std::unique_ptr<request>> waiting, const reply& got)
{
    recent_lists_.note(path, got, lease_clock::now());
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
            waiting.front()->done(got);
        return;
    }
    for (auto& each : waiting) {
        each->answer = got;
        transport_.complete_later(std::move(each));
    }
}

bool requests::flush()
{
    if (empty())
        return false;
    auto* const by = transport_.sender();
    if (!by) {
        refuse_unsent();
        return false;
    }
    auto all = std::exchange(waiting_, {});
    if (std::ssize(all) > max_sent_per_flush) {
        const auto rest = all.begin() + max_sent_per_flush;
        waiting_.assign(std::move_iterator(rest), std::move_iterator(all.end()));
        all.erase(rest, all.end());
    }
    send_batches(*by, all);
    for (auto& each : all) {
        if (!is_batchable(each))
            send(*by, each);
    }
    all.clear();
    if (!waiting_.empty())
        return true;
    waiting_ = std::move(all);
    // A list must see the effects of every request that was made before it.
    send_lists(*by);
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

bool requests::is_batchable(const pending_request& which) noexcept
{
    return which.what == kind::enter || which.what == kind::leave;
}

void requests::send_batches(zk_client& by, std::vector<pending_request>& all)
{
    if (all.size() == 1 && is_batchable(all.front())) {
        send_batch(by, all, std::array{std::size_t{0}});
        return;
    }
    std::vector<std::size_t> which;
    std::vector<batch_item> ready;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& each = all[i];
        if (!is_batchable(each))
            continue;
        const bool enters = each.what == kind::enter;
        which.push_back(i);
        ready.push_back({.parent = each.path,
            .creates = enters,
            .operations = enters ? std::size_t{2} : std::size_t{1},
            .bytes = 2 * each.path.size() + each.name.size() + each.data.size(),
            .is_alone = each.with == batching::forbidden});
    }
    for (auto& members : make_batches(ready)) {
        for (auto& each : members)
            each = which[each];
        send_batch(by, all, members);
    }
}

void requests::send_batch(zk_client& by, std::vector<pending_request>& all, std::span<const std::size_t> members)
{
    auto& first = all[members.front()];
    if (members.size() == 1 && first.what == kind::leave) {
        by.remove(first.path, std::move(first.driver_request));
        return;
    }
    batch joined(by.session_id(), members.size());
    for (const auto i : members)
        joined.add(all[i]);
    const auto changes = joined.take_changes();
    auto driver_request = std::make_unique<request>(std::move(joined), true);
    driver_request->size = static_cast<int>(members.size());
    by.multi(changes, std::move(driver_request));
}

void requests::send(zk_client& by, pending_request& which)
{
    auto& sent = which.driver_request;
    switch (which.what) {
    case kind::create:
        by.create(which.path, which.data, which.lifetime, std::move(sent));
        return;
    case kind::remove:
        by.remove(which.path, std::move(sent));
        return;
    case kind::write:
        by.write(which.path, which.data, std::move(sent));
        return;
    case kind::read:
    case kind::read_and_watch:
        by.read(which.path, which.what == kind::read_and_watch, std::move(sent));
        return;
    case kind::children:
    case kind::children_and_watch:
        by.children(which.path, which.what == kind::children_and_watch, std::move(sent));
        return;
    case kind::exists:
        by.exists(which.path, std::move(sent));
        return;
    case kind::multi:
        by.multi(which.changes, std::move(sent));
        return;
    case kind::enter:
    case kind::leave:
        return;
    }
}

void requests::enter(
    const std::string& folder, std::string_view name, std::string_view data, batching with, reply_handler done)
{
    submit({.what = kind::enter, .with = with, .path = folder, .name = std::string(name), .data = std::string(data)},
        std::move(done));
}

void requests::leave(const std::string& path, batching with, reply_handler done)
{
    submit({.what = kind::leave, .with = with, .path = path}, std::move(done));
}

void requests::create(const std::string& path, std::string_view data, node_kind lifetime, reply_handler done)
{
    submit({.what = kind::create, .lifetime = lifetime, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::remove(const std::string& path, reply_handler done)
{
    submit({.what = kind::remove, .path = path}, std::move(done));
}

void requests::write(const std::string& path, std::string_view data, reply_handler done)
{
    submit({.what = kind::write, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::read(const std::string& path, reply_handler done)
{
    submit({.what = kind::read, .path = path}, std::move(done));
}

void requests::read_and_watch(const std::string& path, reply_handler done)
{
    submit({.what = kind::read_and_watch, .path = path}, std::move(done));
}

void requests::children(const std::string& path, reply_handler done)
{
    submit({.what = kind::children, .path = path}, std::move(done));
}

void requests::children_and_watch(const std::string& path, reply_handler done)
{
    // The lambda may capture `this`, as in `send_lists`.
    submit({.what = kind::children_and_watch, .path = path},
        [this, folder = path, then = std::move(done)](reply got) mutable {
            recent_lists_.note(folder, got, lease_clock::now());
            then(std::move(got));
        });
}

void requests::exists(const std::string& path, reply_handler done)
{
    submit({.what = kind::exists, .path = path}, std::move(done));
}

void requests::sync(const std::string& path, reply_handler done)
{
    multi({{.what = change::kind::check, .path = path}}, std::move(done));
}

void requests::multi(std::vector<change> changes, reply_handler done)
{
    // If a path is not valid, the driver frees memory that it has not allocated.
    const bool are_valid_paths = std::ranges::all_of(changes, [](const change& each) { return is_path(each.path); });
    if (changes.empty() || !are_valid_paths)
        refuse(std::make_unique<request>(std::move(done), false), status::refused);
    else
        submit({.what = kind::multi, .changes = std::move(changes)}, std::move(done));
}

void make_nodes(requests& by, const std::string& path)
{
    const auto make = [&](const std::string& which) { by.create(which, {}, node_kind::persistent, reply_handler()); };
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        make(path.substr(0, end));
    make(path);
}

} // namespace colock::inline v0::zookeeper::detail
