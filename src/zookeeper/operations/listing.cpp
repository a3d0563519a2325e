// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "remote/adapter/stored_time.hpp"
#include "zookeeper/layout/key_encoding.hpp"
#include "zookeeper/layout/lock_queue.hpp"
#include "zookeeper/operations/node_data.hpp"
#include "zookeeper/operations/paths.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Maximum number of keys of a page. The folder of each key is listed, and the node of each holder is read.
constexpr std::size_t max_keys = 256;
constexpr std::size_t max_folders_at_a_time = 16;

/// A node at the front of a lock queue.
struct candidate
{
    std::string key;
    std::string node;
    role node_role;
    /// Number of shared nodes before this one.
    std::size_t readers;
};

/// Returns nullopt if the node waits, because the other holders of a semaphore have taken all of its places.
std::optional<lock_status> status_of(const candidate& candidate, const reply& node)
{
    lock_status status;
    status.key = candidate.key;
    status.mode = candidate.node_role == role::shared ? lock_mode::shared : lock_mode::exclusive;
    // The server removes no node because of its TTL, so no remaining time is reported.
    status.fence = static_cast<std::uint64_t>(node.stat.created_in);
    if (auto data = parse_node_data(node.text)) {
        if (data->max_holders > 0 && candidate.readers >= data->max_holders)
            return std::nullopt;
        remote::fill(status, std::move(data->owner));
    }
    // Both times are by the clock of the server, not by that of the holder.
    status.created = remote::stored_time(node.stat.created_ms);
    if (node.stat.version > 0)
        status.renewed = remote::stored_time(node.stat.modified_ms);
    return status;
}

/// Finds the holders of some keys, and inspects or removes them.
///
/// This is a chain of callbacks, not a coroutine: the requests for hundreds of keys and their holders are in flight at
/// the same time, and each reply leads to the next request of its own key.
class listing_operation : public request_operation
{
public:
    listing_operation(operation_client& owner, listing_action action, filter filter, completion<list_outcome> done)
        : request_operation(owner), filter_(std::move(filter)), action_(action), done_(std::move(done))
    {
    }

protected:
    virtual void request_keys(requests& sender) = 0;
    /// Returns the cursor of the next page; empty if there is none.
    [[nodiscard]] virtual std::string next() const = 0;

    void list_holders(requests& sender, const std::string& key)
    {
        ++pending_count_;
        const auto folder = key_folder(config(), key);
        sender.children(folder, then(&listing_operation::on_children, key));
    }
    void finish_one()
    {
        if (--pending_count_ > 0)
            return;
        end();
        done_({std::move(found_), nullptr, next()});
    }
    /// Returns false if the operation has ended because of this reply.
    [[nodiscard]] bool check_reply(const reply& reply)
    {
        if (reply.ok() || reply.outcome == status::no_node)
            return true;
        end_failed(reply);
        return false;
    }

    const filter filter_;
    const listing_action action_;
    std::size_t pending_count_ = 0;

private:
    void begin() override
    {
        auto* const sender = get_requests();
        if (!sender)
            return;
        found_.clear();
        pending_count_ = 1;
        sender->sync(config().chroot(), then(&listing_operation::on_synced));
        request_keys(*sender);
    }

    void on_synced(const reply& reply)
    {
        if (check_reply(reply))
            finish_one();
    }

    void on_children(const reply& reply, const std::string& key)
    {
        if (!check_reply(reply))
            return;
        auto* const sender = get_requests();
        if (!sender)
            return;
        std::size_t readers = 0;
        for (const auto name : reply.queue(config().layout).front()) {
            const auto at = parse_node(config().layout, name);
            candidate each{key, child_path(key_folder(config(), key), name), at->wants, readers++};
            ++pending_count_;
            const auto node = each.node;
            sender->read(node, then(&listing_operation::on_node, std::move(each)));
        }
        finish_one();
    }

    void on_node(const reply& reply, const candidate& candidate)
    {
        if (!check_reply(reply))
            return;
        auto status = reply.ok() ? status_of(candidate, reply) : std::nullopt;
        if (!status || !filter_.matches(*status)) {
            finish_one();
            return;
        }
        if (action_ == listing_action::list) {
            found_.push_back(std::move(*status));
            finish_one();
        } else if (auto* const sender = get_requests()) {
            sender->remove(candidate.node, then(&listing_operation::on_removed, std::move(*status)));
        }
    }

    void on_removed(const reply& reply, const lock_status& status)
    {
        if (!check_reply(reply))
            return;
        if (reply.ok()) {
            found_.push_back(status);
            // A claim of this client that owned the node must not be granted because of an earlier list.
            if (auto* const sender = sessions().get_requests())
                sender->forget_lists();
        }
        finish_one();
    }

    void failed(delivery, failure_ptr failure) override { done_({{}, std::move(failure)}); }

    completion<list_outcome> done_;
    std::vector<lock_status> found_;
};

class key_operation final : public listing_operation
{
public:
    key_operation(operation_client& owner, listing_request request, completion<list_outcome> done)
        : listing_operation(owner, request.action, std::move(request.filter), std::move(done))
    {
    }

private:
    void request_keys(requests& sender) override { list_holders(sender, *filter_.key); }
    [[nodiscard]] std::string next() const override { return {}; }
};

/// The first names of a folder.
struct folder_page
{
    std::vector<std::string> names{};
    bool has_more = false;
};

/// Returns the names that follow `after`, in order, without names that are not keys.
folder_page first_names(const std::vector<std::string>& all, const std::string& after)
{
    std::vector<const std::string*> names;
    for (const auto& name : all) {
        if (name > after && decode_key(name))
            names.push_back(&name);
    }
    const auto count = std::min(names.size(), max_keys);
    const auto end = names.begin() + static_cast<std::ptrdiff_t>(count);
    std::ranges::partial_sort(names, end, {}, [](const std::string* name) -> const std::string& { return *name; });
    folder_page part{.has_more = count < names.size()};
    std::for_each(names.begin(), end, [&](const std::string* name) { part.names.push_back(*name); });
    return part;
}

class page_operation final : public listing_operation
{
public:
    page_operation(operation_client& owner, listing_request request, page_start from, completion<list_outcome> done)
        : listing_operation(owner, request.action, std::move(request.filter), std::move(done)), from_(std::move(from)),
          next_(from_)
    {
    }

private:
    void request_keys(requests& sender) override
    {
        if (action_ == listing_action::purge) {
            next_.bucket = folder_count();
            return;
        }
        const auto max_folders = from_.after.empty() ? max_folders_at_a_time : std::size_t{1};
        folders_.assign(std::min(max_folders, folder_count() - from_.bucket), {});
        unlisted_count_ = folders_.size();
        for (std::size_t i = 0; i < folders_.size(); ++i) {
            ++pending_count_;
            sender.children(path_of(from_.bucket + i), then(&page_operation::on_keys, i));
        }
    }

    void on_keys(const reply& reply, const std::size_t& index)
    {
        if (!check_reply(reply))
            return;
        folders_[index] = first_names(reply.names(), index == 0 ? from_.after : std::string());
        if (--unlisted_count_ == 0) {
            auto* const sender = get_requests();
            if (!sender)
                return;
            list_keys(*sender);
        }
        finish_one();
    }

    void list_keys(requests& sender)
    {
        std::size_t left = max_keys;
        next_ = from_;
        for (const auto& part : folders_) {
            const auto count = std::min(left, part.names.size());
            for (std::size_t i = 0; i < count; ++i) {
                const auto key = decode_key(part.names[i]);
                if (!filter_.key_prefix || key->starts_with(*filter_.key_prefix))
                    list_holders(sender, *key);
            }
            left -= count;
            if (count < part.names.size() || part.has_more) {
                if (count > 0)
                    next_.after = part.names[count - 1];
                return;
            }
            ++next_.bucket;
            next_.after.clear();
        }
    }

    [[nodiscard]] std::string next() const override { return next_.bucket < folder_count() ? next_.cursor() : ""; }
    /// Layouts other than the standard one have no buckets.
    [[nodiscard]] std::size_t folder_count() const noexcept
    {
        return config().standard() ? page_start::bucket_count : 1;
    }
    [[nodiscard]] std::string path_of(std::size_t bucket) const
    {
        return config().standard() ? child_path(config().chroot(), page_start::name_of(bucket)) : config().chroot();
    }

    const page_start from_;
    page_start next_;
    std::vector<folder_page> folders_;
    /// Number of folders whose list has not arrived yet.
    std::size_t unlisted_count_ = 0;
};

/// Removes the holders of the keys that the index of a group names. The nodes of the index belong to the claims, which
/// remove them.
class group_operation final : public listing_operation
{
public:
    group_operation(operation_client& owner, std::string id, completion<group_outcome> done)
        : listing_operation(owner, listing_action::break_key, filter{.group = id},
              [done = std::move(done)](
                  list_outcome outcome) mutable { done({std::move(outcome.locks), std::move(outcome.error)}); }),
          folder_(group_folder(config(), id))
    {
    }

private:
    void request_keys(requests& sender) override
    {
        ++pending_count_;
        sender.children(folder_, then(&group_operation::on_index));
    }

    void on_index(const reply& reply)
    {
        if (!check_reply(reply))
            return;
        auto* const sender = get_requests();
        if (!sender)
            return;
        std::set<std::string> keys;
        for (const auto& name : reply.names()) {
            if (auto key = indexed_key(name))
                keys.insert(std::move(*key));
        }
        for (const auto& key : keys)
            list_holders(*sender, key);
        finish_one();
    }

    [[nodiscard]] std::string next() const override { return {}; }

    const std::string folder_;
};

} // namespace

operation_ptr make_listing(
    operation_client& owner, listing_request request, page_start from, completion<list_outcome> done)
{
    if (request.filter.key)
        return operation_ptr(new key_operation(owner, std::move(request), std::move(done)));
    return operation_ptr(new page_operation(owner, std::move(request), std::move(from), std::move(done)));
}

operation_ptr make_group_release(operation_client& owner, std::string id, completion<group_outcome> done)
{
    return operation_ptr(new group_operation(owner, std::move(id), std::move(done)));
}

} // namespace colock::inline v0::zookeeper::detail
