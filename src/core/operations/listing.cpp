// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/breaking.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/request_answer.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"
#include "util/cursor.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace colock::inline v0::detail::operations {

namespace {

void throw_if_listing_unavailable(const core& self, const std::string& key)
{
    if (!self.can.list) {
        throw validation_error(errc::unsupported,
            {.key = key, .backend = self.backend_name(), .detail = self.backend_name() + " cannot list its locks"});
    }
    if (self.dead)
        throw create_error(errc::shutting_down, {.key = key, .backend = self.backend_name()});
}

[[noreturn]] void throw_listing_failed(
    const core& self, std::string key, effect kind, const failure_ptr& failure, lease_clock::time_point began)
{
    error_context context{.key = std::move(key), .backend = self.backend_name(), .elapsed = lease_clock::now() - began};
    if (failure && failure->code == errc::invalid_options) {
        context.detail = failure->detail;
        throw validation_error(failure->code, std::move(context));
    }
    throw_unanswered(self, failure, kind, std::move(context));
}

std::function<void(adapter&, completion<list_outcome>)> make_listing(listing_request request)
{
    return [request = std::move(request)](
               adapter& backend, completion<list_outcome> done) { start_listing(backend, request, std::move(done)); };
}

/// Lets other handlers run between the steps on a backend that answers at once, because nothing else interrupts a long
/// series of steps.
/// \param cursor of the next step; empty before the first
asio::awaitable<void> let_others_run(const core& self, const std::string& cursor)
{
    if (self.can.immediate && !cursor.empty())
        co_await asio::post(asio::deferred);
}

asio::awaitable<list_outcome> run_listing(std::shared_ptr<core> self, listing_request request)
{
    auto key = request.filter.key.value_or("");
    const auto kind = request.action == listing_action::list ? effect::none : effect::writes;
    co_await let_others_run(*self, request.cursor);
    throw_if_listing_unavailable(*self, key);
    const auto began = lease_clock::now();
    auto answer = co_await request_answer(self, make_listing(std::move(request)));
    if (answer.error)
        throw_listing_failed(*self, std::move(key), kind, answer.error, began);
    co_return answer;
}

/// Collects the pages of a list in order. Sorting, moving or freeing a hundred thousand entries at once would block the
/// event loop.
class page_collector
{
public:
    explicit page_collector(list_order order) noexcept : order_(order) {}

    [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

    void add(std::vector<lock_status>&& page, bool is_last)
    {
        // A key that the backend moves while the pages are read may appear again on another page.
        std::erase_if(page, [&](const lock_status& each) { return known_.contains(each.key); });
        for (auto& each : page) {
            const auto created = order_ == list_order::newest_first ? each.created : std::nullopt;
            added_.push_back(all_.emplace(created, std::move(each)));
        }
        for (const auto& each : added_) {
            if (!is_last)
                known_.insert(each->second.key);
        }
        added_.clear();
    }
    /// Moves a batch of entries to `to`. Returns true if there are more.
    [[nodiscard]] bool move_some(std::vector<lock_status>& to)
    {
        for (auto left = max_moved_per_handler; left > 0 && !all_.empty(); --left) {
            const auto next = all_.begin();
            known_.erase(next->second.key);
            to.push_back(std::move(next->second));
            all_.erase(next);
        }
        return !all_.empty();
    }

private:
    using ordered = std::multimap<decltype(lock_status::created), lock_status, std::greater<>>;

    static constexpr std::size_t max_moved_per_handler = 1000;

    const list_order order_;
    ordered all_;
    /// Keys of the collected entries, used to detect duplicates.
    std::set<std::string_view> known_;
    /// Entries of the current page. Their keys become known afterwards, because one page may contain several holders of
    /// a key.
    std::vector<ordered::iterator> added_;
};

void throw_if_refused(const std::unique_ptr<const failure>& refused, std::string key, std::string backend)
{
    if (refused) {
        throw validation_error(
            refused->code, {.key = std::move(key), .backend = std::move(backend), .detail = refused->detail});
    }
}

} // namespace

asio::awaitable<std::vector<lock_status>> holders(std::shared_ptr<core> self, std::string key)
{
    throw_if_refused(check_key(key, self->limits), key, self->backend_name());
    listing_request request{.filter = {.key = std::move(key)}};
    auto answer = co_await run_listing(std::move(self), std::move(request));
    co_return std::move(answer.locks);
}

asio::awaitable<bool> is_locked(std::shared_ptr<core> self, std::string key)
{
    co_return !(co_await holders(std::move(self), std::move(key))).empty();
}

asio::awaitable<lock_page> list_page(std::shared_ptr<core> self, filter which, std::string cursor)
{
    listing_request request{.filter = std::move(which), .cursor = std::move(cursor)};
    auto answer = co_await run_listing(std::move(self), std::move(request));
    co_return lock_page{.locks = std::move(answer.locks), .next = std::move(answer.next)};
}

asio::awaitable<std::vector<lock_status>> list(std::shared_ptr<core> self, filter which, list_order order)
{
    page_collector all(order);
    lock_page page;
    do {
        page = co_await list_page(self, which, std::move(page.next));
        all.add(std::move(page.locks), page.next.empty());
    } while (!page.next.empty());
    std::vector<lock_status> result;
    result.reserve(all.size());
    while (all.move_some(result))
        co_await asio::post(asio::deferred);
    co_return result;
}

asio::awaitable<std::vector<lock_status>> purge(std::shared_ptr<core> self, std::size_t limit)
{
    std::vector<lock_status> all;
    listing_request request{.action = listing_action::purge};
    do {
        co_await let_others_run(*self, request.cursor);
        // The locks that were removed are reported even if the rest fails.
        if (!all.empty() && self->dead)
            break;
        const auto began = lease_clock::now();
        if (limit != 0)
            request.limit = std::min(limit - all.size(), listing_request{}.limit);
        if (all.empty())
            throw_if_listing_unavailable(*self, {});
        auto step = co_await request_answer(self, make_listing(request));
        all.insert(all.end(), std::make_move_iterator(step.locks.begin()), std::make_move_iterator(step.locks.end()));
        if (step.error && all.empty())
            throw_listing_failed(*self, {}, effect::writes, step.error, began);
        request.cursor = step.error ? std::string() : std::move(step.next);
    } while (!request.cursor.empty() && (limit == 0 || all.size() < limit));
    co_return all;
}

asio::awaitable<std::string> purge_step(std::shared_ptr<core> self, std::size_t limit, std::string cursor)
{
    listing_request request{.action = listing_action::purge, .cursor = std::move(cursor), .limit = limit};
    auto step = co_await run_listing(std::move(self), std::move(request));
    co_return std::move(step.next);
}

asio::awaitable<std::vector<lock_status>> break_lock(std::shared_ptr<core> self, std::string key)
{
    throw_if_refused(check_key(key, self->limits), key, self->backend_name());
    throw_if_listing_unavailable(*self, key);
    const auto began = lease_clock::now();
    auto query = make_listing({.action = listing_action::break_key, .filter = {.key = key}});
    auto broken =
        co_await break_locks(self, [key](const lock_record& record) { return record.key() == key; }, std::move(query));
    if (broken.error)
        throw_listing_failed(*self, std::move(key), effect::writes, broken.error, began);
    co_return std::move(broken.locks);
}

} // namespace colock::inline v0::detail::operations
