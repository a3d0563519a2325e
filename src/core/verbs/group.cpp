// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"
#include "core/handles.hpp"
#include "core/validation.hpp"
#include "core/verbs.hpp"

#include <algorithm>
#include <utility>

namespace colock {

namespace {

asio::awaitable<std::vector<lock_report>> extend_each(std::vector<lock>& locks, std::chrono::milliseconds ttl)
{
    // All of them before any is extended: what is done by halves has to be reported, not thrown.
    for (const lock& each : locks)
        detail::verbs::check_extend(detail::core::handles::core_of(each), detail::core::handles::record_of(each), ttl);
    std::vector<lock_report> reports;
    for (auto each = locks.rbegin(); each != locks.rend(); ++each) {
        lock_report& report = reports.emplace_back();
        report.key = each->key();
        try {
            co_await each->extend(ttl);
        } catch (const extend_error& failed) {
            report.status = failed.code();
        }
    }
    co_return reports;
}

asio::awaitable<std::vector<lock_report>> release_each(std::vector<lock> locks)
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

} // namespace

lock_group detail::verbs::group(std::shared_ptr<core> self, std::string id)
{
    const auto refuse = [&](errc code, std::string why) {
        throw validation_error(code, {.backend = self->backend_name(), .detail = std::move(why)});
    };
    const bool given = !id.empty();
    if (const auto refused = check_label("the group's id", id))
        refuse(refused->code, refused->detail);
    if (given && !self->can.groups)
        refuse(errc::unsupported, self->backend_name() + " cannot reach a group of locks by its id; name none");
    if (!given)
        id = token::generate().hex();
    return core::handles::make_group(std::move(self), std::move(id), {}, given);
}

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
    if (std::ranges::any_of(locks_, [&](const lock& each) { return each.key() == key; })) {
        throw validation_error(errc::invalid_options, {.key = key,
                                                          .backend = core_->backend_name(),
                                                          .detail = "the group has this key already, and would wait "
                                                                    "for itself; use the lock that it has"});
    }
    auto wanted = detail::verbs::prepare(core_, std::move(key), std::move(options), renewal::manual, true, id_);
    locks_.push_back(co_await detail::verbs::acquire(core_, std::move(wanted)));
}

asio::awaitable<std::vector<lock_report>> lock_group::extend(std::chrono::milliseconds ttl)
{
    return extend_each(locks_, ttl);
}

asio::awaitable<std::vector<lock_report>> lock_group::release()
{
    return release_each(std::exchange(locks_, {}));
}

} // namespace colock
