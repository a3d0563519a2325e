// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/line.hpp"
#include "zookeeper/operations/names.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

namespace {

using std::chrono::milliseconds;
using wall_clock = std::chrono::system_clock;

constexpr std::string_view digits = "0123456789abcdef";

/// One that stands at the front of a line.
struct candidate
{
    std::string key;
    std::string node;
    role wants;
    /// How many readers stand before it.
    std::size_t readers;
};

/// Nothing if it waits: for a semaphore that others fill.
std::optional<lock_status> status_of(const candidate& which, const reply& node)
{
    lock_status status;
    status.key = which.key;
    status.mode = which.wants == role::shared ? lock_mode::shared : lock_mode::exclusive;
    // The server ends nothing by its ttl: nothing is said of what remains.
    status.fence = static_cast<std::uint64_t>(node.stat.created_in);
    if (auto known = parse_node_data(node.text)) {
        if (known->max_holders > 0 && which.readers >= known->max_holders)
            return std::nullopt;
        remote::fill(status, std::move(known->who));
    }
    // By the server's clock.
    status.created = wall_clock::time_point(milliseconds(node.stat.created_ms));
    if (node.stat.version > 0)
        status.renewed = wall_clock::time_point(milliseconds(node.stat.modified_ms));
    return status;
}

/// Of some keys: who holds them, and what is done with that.
class listing_operation : public request_operation
{
public:
    listing_operation(client& owner, key_purpose why, filter which, completion<list_outcome> done)
        : request_operation(owner), purpose_(why), which_(std::move(which)), done_(std::move(done))
    {
    }

protected:
    virtual void ask_for_keys(requests& by) = 0;
    /// What is behind these keys.
    [[nodiscard]] virtual std::string next() const = 0;

    void look_at(requests& by, const std::string& key)
    {
        ++open_;
        const auto folder = key_folder(config(), key);
        by.children(folder, then(&listing_operation::listed, key));
    }
    void end_one()
    {
        if (--open_ > 0)
            return;
        end();
        done_({std::move(found_), nullptr, next()});
    }
    /// False if the operation has ended with that.
    [[nodiscard]] bool is_there(const reply& got)
    {
        if (got.ok() || got.what == status::no_node)
            return true;
        end_failed(got);
        return false;
    }

    std::size_t open_ = 0;

private:
    void begin() override
    {
        auto* const by = ask();
        if (!by)
            return;
        found_.clear();
        open_ = 1;
        by->sync(config().chroot(), then(&listing_operation::synced));
        ask_for_keys(*by);
    }

    void synced(const reply& got)
    {
        if (is_there(got))
            end_one();
    }

    void listed(const reply& got, const std::string& key)
    {
        if (!is_there(got))
            return;
        auto* const by = ask();
        if (!by)
            return;
        std::size_t readers = 0;
        for (const auto& name : front_of_line(config().layout, got.names)) {
            const auto at = parse_node(config().layout, name);
            candidate each{key, child_path(key_folder(config(), key), name), at->wants, readers++};
            ++open_;
            const auto node = each.node;
            by->read(node, then(&listing_operation::read, std::move(each)));
        }
        end_one();
    }

    void read(const reply& got, const candidate& which)
    {
        if (!is_there(got))
            return;
        auto status = got.ok() ? status_of(which, got) : std::nullopt;
        if (!status || !which_.matches(*status)) {
            end_one();
            return;
        }
        if (purpose_ == key_purpose::inspect) {
            found_.push_back(std::move(*status));
            end_one();
        } else if (auto* const by = ask()) {
            by->remove(which.node, then(&listing_operation::removed, std::move(*status)));
        }
    }

    void removed(const reply& got, const lock_status& of)
    {
        if (!is_there(got))
            return;
        if (got.ok())
            found_.push_back(of);
        end_one();
    }

    void failed(delivery, failure_ptr why) override { done_({{}, std::move(why)}); }

    const key_purpose purpose_;
    const filter which_;
    completion<list_outcome> done_;
    std::vector<lock_status> found_;
};

class key_operation final : public listing_operation
{
public:
    key_operation(client& owner, std::string key, key_purpose why, filter which, completion<list_outcome> done)
        : listing_operation(owner, why, std::move(which), std::move(done)), key_(std::move(key))
    {
    }

private:
    void ask_for_keys(requests& by) override { look_at(by, key_); }
    [[nodiscard]] std::string next() const override { return {}; }

    const std::string key_;
};

class purge_operation final : public listing_operation
{
public:
    purge_operation(client& owner, completion<list_outcome> done)
        : listing_operation(owner, key_purpose::inspect, filter{}, std::move(done))
    {
    }

private:
    void ask_for_keys(requests&) override {}
    [[nodiscard]] std::string next() const override { return {}; }
};

class page_operation final : public listing_operation
{
public:
    page_operation(client& owner, filter which, const std::string& cursor, completion<list_outcome> done)
        : listing_operation(owner, key_purpose::inspect, std::move(which), std::move(done)),
          page_(cursor.empty() ? digits.front() : cursor.front())
    {
    }

private:
    void ask_for_keys(requests& by) override
    {
        // Other layouts have no buckets.
        if (!config().standard()) {
            ask_for_folder(by, config().chroot());
            return;
        }
        for (const char digit : digits)
            ask_for_folder(by, child_path(config().chroot(), std::string{page_, digit}));
    }

    void ask_for_folder(requests& by, const std::string& folder)
    {
        ++open_;
        by.children(folder, then(&page_operation::keys_listed));
    }

    void keys_listed(const reply& got)
    {
        if (!is_there(got))
            return;
        auto* const by = ask();
        if (!by)
            return;
        for (const auto& name : got.names) {
            if (const auto key = decode_key(name))
                look_at(*by, *key);
        }
        end_one();
    }

    [[nodiscard]] std::string next() const override
    {
        const auto behind = digits.find(page_) + 1;
        return config().standard() && behind < digits.size() ? std::string(1, digits[behind]) : std::string();
    }

    /// The first digit of its buckets.
    const char page_;
};

} // namespace

operation_ptr make_key_listing(
    client& owner, std::string key, key_purpose why, filter which, completion<list_outcome> done)
{
    return operation_ptr(new key_operation(owner, std::move(key), why, std::move(which), std::move(done)));
}

operation_ptr make_page(client& owner, filter which, const std::string& cursor, completion<list_outcome> done)
{
    return operation_ptr(new page_operation(owner, std::move(which), cursor, std::move(done)));
}

operation_ptr make_purge(client& owner, completion<list_outcome> done)
{
    return operation_ptr(new purge_operation(owner, std::move(done)));
}

} // namespace colock::zookeeper::detail
