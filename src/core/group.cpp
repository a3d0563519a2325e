// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/validation.hpp"
#include "core/work.hpp"

#include <algorithm>

namespace colock::detail {

asio::awaitable<lock_group> core::acquire_all(
    std::shared_ptr<core> self, std::vector<std::string> keys, acquire_options options)
{
    if (keys.empty()) {
        throw validation_error(errc::invalid_options,
            {.backend = self->backend_name(),
                .detail = "the list of keys is empty; name at least one, or use acquire_global()"});
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());

    lock_group group;
    group.core_ = self;
    group.id_ = token::generate().hex();
    const auto prepare = [&](const std::string& key, bool queues) {
        auto wanted =
            core::prepare(self, std::string(key), acquire_options(options), renewal::manual, queues, group.id_);
        self->throw_refused(*wanted);
        return wanted;
    };
    for (const auto& key : keys)
        static_cast<void>(prepare(key, false));

    const retry_policy policy = options.retry.value_or(self->options_.retry);
    retry_schedule schedule(policy, lease_clock::now());
    std::string busy;
    std::optional<create_error> failed;
    for (;;) {
        group.locks_.clear();
        if (!busy.empty()) {
            // Waited for while nothing is held. It is kept then: the others are only tried, so nobody can deadlock.
            group.locks_.push_back(co_await acquire_under(self, prepare(busy, true), &schedule));
        }
        const std::string first = std::exchange(busy, {});
        for (const auto& key : keys) {
            if (key == first)
                continue;
            std::optional<lock> one;
            failed.reset();
            try {
                one = co_await try_acquire(self, prepare(key, false));
            } catch (const create_error& error) {
                if (!may_be_tried_again(error.code()))
                    throw;
                failed.emplace(error);
            }
            if (!one) {
                busy = key;
                break;
            }
            group.locks_.push_back(std::move(*one));
        }
        if (busy.empty() && group.held())
            co_return group;
        // A lease that ended on the way counts as busy too: all is given back, then it is tried again.
        if (busy.empty())
            busy = keys.front();
        co_await release_each(std::move(group.locks_));
        group.locks_.clear();
        if (!schedule.failed(lease_clock::now())) {
            if (failed)
                throw create_error(*failed);
            throw retry_error(errc::retry_exhausted, {.key = busy,
                                                         .backend = self->backend_name(),
                                                         .attempts = schedule.attempts(),
                                                         .elapsed = lease_clock::now() - schedule.start(),
                                                         .detail = "one of several locks stayed busy"});
        }
    }
}

asio::awaitable<std::vector<lock_report>> core::release_each(std::vector<lock> locks)
{
    std::vector<lock_report> reports;
    while (!locks.empty()) {
        lock held = std::move(locks.back());
        locks.pop_back();
        lock_report& report = reports.emplace_back();
        report.key = held.key();
        try {
            co_await held.release(on_failure::raise);
        } catch (const release_error& failed) {
            report.status = failed.code();
        }
    }
    co_return reports;
}

asio::awaitable<lock> core::acquire_for_group(
    std::shared_ptr<core> self, std::string group, std::string key, acquire_options options)
{
    auto wanted = core::prepare(self, std::move(key), std::move(options), renewal::manual, true, group);
    return acquire_under(std::move(self), std::move(wanted), nullptr);
}

} // namespace colock::detail

namespace colock {

lock_group& lock_group::operator=(lock_group&& other) noexcept
{
    if (this != &other) {
        drop();
        core_ = std::move(other.core_);
        id_ = std::move(other.id_);
        locks_ = std::move(other.locks_);
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

asio::awaitable<void> lock_group::acquire(std::string key, acquire_options options)
{
    if (!core_) {
        throw validation_error(
            errc::invalid_options, {.key = key, .detail = "the group is empty or was moved from; acquire a new one"});
    }
    locks_.push_back(co_await detail::core::acquire_for_group(core_, id_, std::move(key), std::move(options)));
}

asio::awaitable<std::vector<lock_report>> lock_group::extend(std::chrono::milliseconds ttl)
{
    std::vector<lock_report> reports;
    for (auto each = locks_.rbegin(); each != locks_.rend(); ++each) {
        lock_report report{each->key(), {}};
        try {
            co_await each->extend(ttl);
        } catch (const extend_error& failed) {
            report.status = failed.code();
        }
        reports.push_back(std::move(report));
    }
    co_return reports;
}

asio::awaitable<std::vector<lock_report>> lock_group::release()
{
    return detail::core::release_each(std::exchange(locks_, {}));
}

} // namespace colock
