// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/breaking.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/request_answer.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0 {

namespace {

using reports = std::vector<lock_report>;
using detail::core;
using detail::lock_record;
using milliseconds = std::chrono::milliseconds;

std::vector<lock_record::ptr> newest_first(const std::vector<lock>& locks)
{
    std::vector<lock_record::ptr> records;
    records.reserve(locks.size());
    for (auto each = locks.rbegin(); each != locks.rend(); ++each)
        records.emplace_back(&lock_record::from_lock(*each));
    return records;
}

lock_report report_of(const lock_record& own, lease_clock::time_point now)
{
    const auto& owner = own.owner();
    lock_report report{.key = own.key()};
    report.before = {.key = own.key(),
        .group = owner.group,
        .mode = own.mode(),
        .owner = owner.owner,
        .host = owner.host,
        .comment = owner.comment,
        .fence = own.lease_state().fence};
    if (const auto ends = own.lease().valid_until(); ends != lease_clock::time_point::max())
        report.before.remaining = std::chrono::floor<milliseconds>(std::max(ends, now) - now);
    return report;
}

reports reports_of(const std::vector<lock_record::ptr>& own)
{
    const auto now = lease_clock::now();
    reports all;
    all.reserve(own.size());
    for (const auto& each : own)
        all.push_back(report_of(*each, now));
    return all;
}

void set_statuses(reports& result, const std::vector<error_code>& failures)
{
    for (std::size_t i = 0; i < failures.size(); ++i)
        result[i].status = failures[i];
}

void append(reports& result, std::vector<lock_status> locks)
{
    std::ranges::sort(locks, std::ranges::greater(), &lock_status::created);
    for (auto& each : locks) {
        auto key = each.key;
        result.push_back({.key = std::move(key), .before = std::move(each)});
    }
}

/// Removes the locks of this handle from the backend's list, because they are reported separately.
void remove_own(const reports& own, std::vector<lock_status>& locks)
{
    for (const auto& each : own) {
        if (each.status == errc::not_held)
            continue;
        const auto same = std::ranges::find_if(locks, [&](const lock_status& other) {
            // A backend without fences has one exclusive holder, or shared holders with equal data.
            return other.key == each.key && (other.fence == each.before.fence || other.fence == 0);
        });
        if (same != locks.end())
            locks.erase(same);
    }
}

error_context context_of(const core& self, const std::string& id)
{
    return {.backend = self.backend_name(), .detail = "of the group " + id};
}

template <class Error>
[[noreturn]] void throw_failed(const core& self, const std::string& id, const failure& failure)
{
    auto context = context_of(self, id);
    context.attempts = 1;
    context.cause = failure.cause;
    context.detail += failure.detail.empty() ? "" : ": " + failure.detail;
    throw Error(failure.code, std::move(context));
}

std::function<void(adapter&, completion<group_outcome>)> make_group_request(
    std::string id, group_action action, milliseconds ttl)
{
    return [id = std::move(id), action, ttl](adapter& backend, completion<group_outcome> done) {
        backend.start_group(id, action, ttl, std::move(done));
    };
}

/// Records that the backend may keep these locks for `ttl` from now on.
void record_extension(core& self, const std::vector<lock_record::ptr>& own, milliseconds ttl)
{
    const auto now = lease_clock::now();
    const std::lock_guard guard(self.mutex);
    for (const auto& each : own)
        each->release_state().retries.note_expiry(now, ttl);
}

/// Extends all locks of the group at the backend, before the own locks are extended through their handles. The backend
/// extends nothing if one lock has no TTL. The request never shortens a lease, so no holder relies on more time than
/// the backend grants. The handles then set the exact new expiry of the own locks.
asio::awaitable<std::vector<lock_status>> extend_all_of(
    std::shared_ptr<core> self, std::string id, milliseconds ttl, std::vector<lock_record::ptr> own)
{
    detail::operations::check_new_ttl(*self, ttl, context_of(*self, id));
    if (!self->can.extends_groups) {
        auto context = context_of(*self, id);
        context.detail += ": " + self->backend_name() + " extends a lock for its own session alone; extend its handle";
        throw validation_error(errc::unsupported, std::move(context));
    }
    if (self->dead)
        throw extend_error(errc::shutting_down, context_of(*self, id));
    record_extension(*self, own, ttl);
    auto answer = co_await detail::request_answer(self, make_group_request(id, group_action::extend, ttl));
    if (answer.error && answer.error->code == errc::invalid_ttl)
        throw_failed<validation_error>(*self, id, *answer.error);
    if (answer.error)
        throw_failed<extend_error>(*self, id, *answer.error);
    if (answer.locks.empty() && own.empty())
        throw extend_error(errc::not_held, context_of(*self, id));
    co_return std::move(answer.locks);
}

asio::awaitable<reports> extend_group(
    std::shared_ptr<core> self, std::string id, bool by_id, std::vector<lock_record::ptr> own, milliseconds ttl)
{
    if (!self)
        co_return reports();
    // All locks are checked before any is extended, because a partial result must be reported, not thrown.
    for (const auto& each : own)
        detail::operations::check_extend(*self, *each, ttl);
    auto result = reports_of(own);
    std::vector<lock_status> others;
    if (by_id)
        others = co_await extend_all_of(self, std::move(id), ttl, own);
    set_statuses(result, co_await detail::operations::extend_each(std::move(self), std::move(own), ttl));
    remove_own(result, others);
    append(result, std::move(others));
    co_return result;
}

asio::awaitable<reports> release_group(std::shared_ptr<core> self, std::string id, bool by_id, std::vector<lock> locks)
{
    if (!self)
        co_return reports();
    auto own = newest_first(locks);
    auto result = reports_of(own);
    set_statuses(result, co_await detail::operations::release_each(self, std::move(own)));
    if (!by_id)
        co_return result;
    if (self->dead)
        throw release_error(errc::shutting_down, context_of(*self, id));
    auto others = co_await detail::break_locks(
        self, [id](const lock_record& record) { return record.owner().group == id; },
        make_group_request(id, group_action::release, milliseconds(0)));
    if (others.error)
        throw_failed<release_error>(*self, id, *others.error);
    append(result, std::move(others.locks));
    co_return result;
}

} // namespace

lock_group detail::operations::group(std::shared_ptr<core> self, std::string id)
{
    const auto refuse = [&](errc code, std::string text) {
        throw validation_error(code, {.backend = self->backend_name(), .detail = std::move(text)});
    };
    const bool has_id = !id.empty();
    if (const auto refused = check_label("the group's id", id))
        refuse(refused->code, refused->detail);
    if (has_id && !self->can.groups)
        refuse(
            errc::unsupported, self->backend_name() + " cannot access a group of locks by its id; leave the id empty");
    if (!has_id)
        id = token::generate().hex();
    return core::make_group(std::move(self), std::move(id), {}, has_id);
}

lock_group& lock_group::operator=(lock_group&& other) noexcept
{
    if (this != &other) {
        drop();
        core_ = std::move(other.core_);
        id_ = std::move(other.id_);
        locks_ = std::move(other.locks_);
        by_id_ = other.by_id_;
    }
    return *this;
}

lock_group::~lock_group()
{
    drop();
}

void lock_group::drop() noexcept
{
    while (!locks_.empty())
        locks_.pop_back();
}

bool lock_group::held() const noexcept
{
    return !locks_.empty() && std::all_of(locks_.begin(), locks_.end(), [](const lock& each) { return each.held(); });
}

namespace {

[[noreturn]] void throw_no_locker(std::string key = {})
{
    throw validation_error(errc::invalid_options,
        {.key = std::move(key), .detail = "the group is empty or was moved from; acquire a new one"});
}

/// Makes the record of an acquire that adds a lock to a group.
lock_record::ptr prepare_member(const std::shared_ptr<core>& self, const std::string& id,
    const std::vector<lock>& locks, std::string&& key, acquire_options&& options)
{
    const bool is_member = std::ranges::find(locks, key, &lock::key) != locks.end();
    auto record = detail::operations::prepare(self, std::move(key), std::move(options), renewal::manual, true, id);
    if (is_member && !record->acquire_state().input_failure) {
        record->acquire_state().input_failure = std::make_unique<const failure>(failure{.code = errc::invalid_options,
            .detail = "the group already holds this key and would wait for itself; use the existing lock"});
    }
    return record;
}

/// Adds an acquired lock to its group, and invokes the handler of the acquire.
struct member_completion
{
    using wrapped_handler_type = detail::wrapped_handler<detail::operation_handler<void>>;
    detail::operation_handler<void> handler;
    std::vector<lock>* locks;

    void operator()(std::exception_ptr failure, lock granted)
    {
        if (!failure) {
            try {
                locks->push_back(std::move(granted));
            } catch (const std::bad_alloc&) {
                failure = std::current_exception();
            }
        }
        std::move(handler)(std::move(failure));
    }
};

} // namespace

asio::any_io_executor lock_group::executor() const
{
    if (!core_)
        throw_no_locker();
    return core_->executor();
}

asio::awaitable<void> lock_group::acquire(key_name key, acquire_options options)
{
    if (!core_)
        throw_no_locker(std::move(key.name));
    auto record = prepare_member(core_, id_, locks_, std::move(key.name), std::move(options));
    locks_.push_back(co_await detail::operations::acquire(core_, std::move(record)));
}

void lock_group::start_acquire(std::string&& key, acquire_options&& options, detail::operation_handler<void> handler)
{
    auto record = prepare_member(core_, id_, locks_, std::move(key), std::move(options));
    detail::operations::start_prepared_acquire(
        member_completion{std::move(handler), &locks_}, core_, std::move(record));
}

namespace {

[[noreturn]] void throw_no_locks()
{
    throw validation_error(
        errc::invalid_options, {.detail = "the group has no locks whose loss it could wait for; acquire one first"});
}

asio::awaitable<lost_lock> refuse_to_wait_for_loss()
{
    throw_no_locks();
    co_return lost_lock{};
}

} // namespace

std::vector<claim_ptr> lock_group::claims() const
{
    if (locks_.empty())
        throw_no_locks();
    std::vector<claim_ptr> all;
    all.reserve(locks_.size());
    for (const auto& each : locks_)
        all.emplace_back(&lock_record::from_lock(each));
    return all;
}

namespace {

std::vector<lock_record::ptr> records_of(const std::vector<claim_ptr>& claims)
{
    std::vector<lock_record::ptr> records;
    records.reserve(claims.size());
    for (const auto& each : claims)
        records.emplace_back(&lock_record::from_claim(each));
    return records;
}

} // namespace

asio::awaitable<lost_lock> lock_group::lost() const
{
    return locks_.empty() ? refuse_to_wait_for_loss() : detail::operations::first_lost(core_, records_of(claims()));
}

void lock_group::start_lost(
    const std::vector<claim_ptr>& claims, const core_ptr& core, detail::operation_handler<lost_lock> handler)
{
    detail::operations::start_first_lost(std::move(handler), core, records_of(claims));
}

const lock& lock_group::at(std::string_view key) const
{
    const auto found = std::ranges::find(locks_, key, &lock::key);
    if (found == locks_.end()) {
        throw validation_error(errc::invalid_options,
            {.key = std::string(key),
                .detail = "this handle of the group has no lock with this key; use one of the keys in locks()"});
    }
    return *found;
}

lock lock_group::take(std::string_view key)
{
    const auto found = locks_.begin() + (&at(key) - locks_.data());
    lock taken = std::move(*found);
    locks_.erase(found);
    return taken;
}

asio::awaitable<std::vector<lock_report>> lock_group::extend(std::chrono::milliseconds ttl)
{
    return extend_group(core_, id_, by_id_, newest_first(locks_), ttl);
}

asio::awaitable<std::vector<lock_report>> lock_group::release()
{
    return release_group(core_, id_, by_id_, std::exchange(locks_, {}));
}

} // namespace colock::inline v0
