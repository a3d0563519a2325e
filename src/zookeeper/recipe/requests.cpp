// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/requests.hpp"

#include "zookeeper/recipe/parts.hpp"
#include "zookeeper/url.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// A quarter of what a server takes unless it was told otherwise: one that is more cuts the connection of everybody.
constexpr std::size_t largest = std::size_t{256} * 1024;

/// The driver takes some microseconds for each.
constexpr std::ptrdiff_t most_sent = 256;

/// What was told of one that was sent with others.
reply same_for_all(const reply& got)
{
    return {.what = got.what, .code = got.code};
}

} // namespace

/// Some that travel as one transaction, and who is told of each.
class requests::joint
{
public:
    joint(std::int64_t session, std::size_t members) : session_(session)
    {
        members_.reserve(members);
        changes_.reserve(2 * members);
    }

    void add(pending_request& each)
    {
        members_.push_back({.first = changes_.size(), .what = each.what, .done = std::move(each.asked->done)});
        if (each.what == kind::leave) {
            changes_.push_back({.what = change::kind::remove, .path = std::move(each.path)});
            return;
        }
        changes_.push_back({.what = change::kind::create,
            .path = each.path + '/' + each.name,
            .data = std::move(each.data),
            .lives = node_kind::ephemeral_sequential});
        // What tells how many there are, and the number of the transaction.
        changes_.push_back({.what = change::kind::write, .path = std::move(each.path)});
    }
    [[nodiscard]] std::vector<change> take_changes() noexcept { return std::exchange(changes_, {}); }

    void operator()(reply got)
    {
        if (got.ok())
            all_done(got);
        else if (got.what < status::unsent)
            nothing_done(got);
        else
            for (auto& each : members_)
                tell(each, same_for_all(got));
    }

private:
    struct member
    {
        /// Of its changes.
        std::size_t first;
        kind what;
        replied done;
    };

    static void tell(member& which, reply answer)
    {
        if (which.done)
            which.done(std::move(answer));
    }
    void all_done(reply& got)
    {
        for (auto& each : members_) {
            reply own{.what = status::ok};
            if (each.what == kind::enter) {
                const auto& folder = got.members[each.first + 1].stat;
                own.text = std::move(got.members[each.first].text);
                own.stat = {.created_in = folder.modified_in, .ephemeral_owner = session_};
                own.crowd = folder.children;
            }
            tell(each, std::move(own));
        }
    }
    void nothing_done(const reply& got)
    {
        std::vector<int> codes;
        for (const auto& each : got.members)
            codes.push_back(each.code);
        const auto culprit = outcome_of(got.code, codes).culprit;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const auto end = i + 1 < members_.size() ? members_[i + 1].first : codes.size();
            if (culprit && *culprit >= members_[i].first && *culprit < end)
                tell(members_[i], same_for_all(got.members[*culprit]));
            else if (members_.size() == 1)
                tell(members_[i], same_for_all(got));
            else
                tell(members_[i], {.what = status::batch_aborted});
        }
    }

    const std::int64_t session_;
    std::vector<change> changes_;
    std::vector<member> members_;
};

void requests::submit(pending_request added, replied done)
{
    constexpr std::array writing{kind::enter, kind::leave, kind::create, kind::remove, kind::write, kind::multi};
    // Not a sync: it is answered through the leader, but by one, too, that has lost its followers.
    const bool writes = std::ranges::find(writing, added.what) != writing.end();
    added.asked = std::make_unique<request>(std::move(done), writes);
    std::size_t size = added.path.size() + added.name.size() + added.data.size();
    for (const auto& each : added.changes)
        size += each.path.size() + each.data.size();
    if (size > largest)
        refuse(std::move(added.asked), status::refused);
    else if (to_.take_request())
        waiting_.push_back(std::move(added));
    else
        refuse(std::move(added.asked), status::unsent);
}

void requests::refuse(std::unique_ptr<request> unsent, status why)
{
    unsent->answer.what = why;
    to_.tell_later(std::move(unsent));
}

void requests::refuse_all()
{
    for (auto& each : std::exchange(waiting_, {}))
        refuse(std::move(each.asked), status::unsent);
    unsent_lists_ = 0;
    for (auto& [path, list] : lists_) {
        for (auto& each : std::exchange(list.asked, {}))
            refuse(std::move(each), status::unsent);
    }
    std::erase_if(lists_, [](const auto& each) { return !each.second.is_in_flight; });
}

void requests::shared_children(const std::string& path, replied done)
{
    auto asked = std::make_unique<request>(std::move(done), false);
    if (path.size() > largest)
        return refuse(std::move(asked), status::refused);
    if (!to_.take_request())
        return refuse(std::move(asked), status::unsent);
    auto& list = lists_[path];
    if (list.asked.empty() && !list.is_in_flight)
        ++unsent_lists_;
    list.asked.push_back(std::move(asked));
}

void requests::send_lists(zk_client& by)
{
    if (unsent_lists_ == 0)
        return;
    unsent_lists_ = 0;
    for (auto& [path, list] : lists_) {
        if (list.asked.empty() || std::exchange(list.is_in_flight, true))
            continue;
        // The session calls this only while it exists, and these requests are a part of it.
        auto answered = [this, folder = path, asked = std::exchange(list.asked, {})](
                            const reply& got) mutable { list_answered(folder, std::move(asked), got); };
        by.children(path, false, std::make_unique<request>(std::move(answered), false));
    }
}

/// Callers that share the list receive it in parts, so that a crowd does not block the event loop.
void requests::list_answered(const std::string& path, std::vector<std::unique_ptr<request>> asked, const reply& got)
{
    const auto found = lists_.find(path);
    found->second.is_in_flight = false;
    if (found->second.asked.empty()) {
        lists_.erase(found);
    } else if (to_.take_request()) {
        ++unsent_lists_;
    } else {
        for (auto& each : std::exchange(found->second.asked, {}))
            refuse(std::move(each), status::unsent);
        lists_.erase(found);
    }
    if (asked.size() == 1) {
        if (asked.front()->done)
            asked.front()->done(got);
        return;
    }
    for (auto& each : asked) {
        each->answer = got;
        to_.tell_later(std::move(each));
    }
}

bool requests::flush()
{
    if (empty())
        return false;
    auto* const by = to_.sender();
    if (!by) {
        refuse_all();
        return false;
    }
    auto all = std::exchange(waiting_, {});
    if (std::ssize(all) > most_sent) {
        const auto rest = all.begin() + most_sent;
        waiting_.assign(std::move_iterator(rest), std::move_iterator(all.end()));
        all.erase(rest, all.end());
    }
    send_joint(*by, all);
    for (auto& each : all) {
        if (!may_join(each))
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

told_list requests::take_unsent() noexcept
{
    told_list all;
    for (auto& each : waiting_)
        all.push_back(*each.asked.release());
    waiting_.clear();
    for (auto& [path, list] : lists_) {
        for (auto& each : list.asked)
            all.push_back(*each.release());
        list.asked.clear();
    }
    unsent_lists_ = 0;
    return all;
}

bool requests::may_join(const pending_request& which) noexcept
{
    return which.what == kind::enter || which.what == kind::leave;
}

void requests::send_joint(zk_client& by, std::vector<pending_request>& all)
{
    if (all.size() == 1 && may_join(all.front())) {
        send_part(by, all, std::array{std::size_t{0}});
        return;
    }
    std::vector<std::size_t> which;
    std::vector<batch_item> ready;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& each = all[i];
        if (!may_join(each))
            continue;
        const bool enters = each.what == kind::enter;
        which.push_back(i);
        ready.push_back({.parent = each.path,
            .creates = enters,
            .operations = enters ? std::size_t{2} : std::size_t{1},
            .bytes = 2 * each.path.size() + each.name.size() + each.data.size(),
            .by_itself = each.with == batching::none});
    }
    for (auto& part : in_parts(ready)) {
        for (auto& each : part)
            each = which[each];
        send_part(by, all, part);
    }
}

void requests::send_part(zk_client& by, std::vector<pending_request>& all, std::span<const std::size_t> part)
{
    auto& first = all[part.front()];
    if (part.size() == 1 && first.what == kind::leave) {
        by.remove(first.path, std::move(first.asked));
        return;
    }
    joint together(by.session_id(), part.size());
    for (const auto i : part)
        together.add(all[i]);
    const auto changes = together.take_changes();
    auto asked = std::make_unique<request>(std::move(together), true);
    asked->size = static_cast<int>(part.size());
    by.multi(changes, std::move(asked));
}

void requests::send(zk_client& by, pending_request& which)
{
    auto& asked = which.asked;
    switch (which.what) {
    case kind::create:
        by.create(which.path, which.data, which.lives, std::move(asked));
        return;
    case kind::remove:
        by.remove(which.path, std::move(asked));
        return;
    case kind::write:
        by.write(which.path, which.data, std::move(asked));
        return;
    case kind::read:
    case kind::read_and_watch:
        by.read(which.path, which.what == kind::read_and_watch, std::move(asked));
        return;
    case kind::children:
    case kind::children_and_watch:
        by.children(which.path, which.what == kind::children_and_watch, std::move(asked));
        return;
    case kind::exists:
        by.exists(which.path, std::move(asked));
        return;
    case kind::sync:
        by.sync(which.path, std::move(asked));
        return;
    case kind::multi:
        by.multi(which.changes, std::move(asked));
        return;
    case kind::enter:
    case kind::leave:
        return;
    }
}

void requests::enter(
    const std::string& folder, std::string_view name, std::string_view data, batching with, replied done)
{
    submit({.what = kind::enter, .with = with, .path = folder, .name = std::string(name), .data = std::string(data)},
        std::move(done));
}

void requests::leave(const std::string& path, batching with, replied done)
{
    submit({.what = kind::leave, .with = with, .path = path}, std::move(done));
}

void requests::create(const std::string& path, std::string_view data, node_kind lives, replied done)
{
    submit({.what = kind::create, .lives = lives, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::remove(const std::string& path, replied done)
{
    submit({.what = kind::remove, .path = path}, std::move(done));
}

void requests::write(const std::string& path, std::string_view data, replied done)
{
    submit({.what = kind::write, .path = path, .data = std::string(data)}, std::move(done));
}

void requests::read(const std::string& path, replied done)
{
    submit({.what = kind::read, .path = path}, std::move(done));
}

void requests::read_and_watch(const std::string& path, replied done)
{
    submit({.what = kind::read_and_watch, .path = path}, std::move(done));
}

void requests::children(const std::string& path, replied done)
{
    submit({.what = kind::children, .path = path}, std::move(done));
}

void requests::children_and_watch(const std::string& path, replied done)
{
    submit({.what = kind::children_and_watch, .path = path}, std::move(done));
}

void requests::exists(const std::string& path, replied done)
{
    submit({.what = kind::exists, .path = path}, std::move(done));
}

void requests::sync(const std::string& path, replied done)
{
    submit({.what = kind::sync, .path = path}, std::move(done));
}

void requests::multi(std::vector<change> changes, replied done)
{
    // The driver frees what it never had if one is no path.
    const bool is_sound = std::ranges::all_of(changes, [](const change& each) { return is_path(each.path); });
    if (changes.empty() || !is_sound)
        refuse(std::make_unique<request>(std::move(done), false), status::refused);
    else
        submit({.what = kind::multi, .changes = std::move(changes)}, std::move(done));
}

void make_nodes(requests& by, const std::string& path)
{
    const auto make = [&](const std::string& which) { by.create(which, {}, node_kind::persistent, replied()); };
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        make(path.substr(0, end));
    make(path);
}

} // namespace colock::zookeeper::detail
