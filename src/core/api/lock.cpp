// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/lock.hpp>

#include "core/operations/operations.hpp"
#include "core/state/abandon.hpp"
#include "core/state/core.hpp"

#include <boost/asio/system_executor.hpp>

#include <chrono>

namespace colock::inline v0 {

using detail::lock_record;

namespace {

const std::string no_key;

void throw_if_empty(const claim_ptr& record)
{
    if (!record) {
        throw validation_error(errc::invalid_options,
            {.detail = "the lock is empty: default-constructed or moved from; use the one that acquire returned"});
    }
}

} // namespace

lock& lock::operator=(lock&& other) noexcept
{
    if (this != &other) {
        const lock old = std::move(*this);
        record_ = std::move(other.record_);
        core_ = std::move(other.core_);
    }
    return *this;
}

lock::~lock()
{
    if (record_ && lock_record::from_claim(record_).current_phase() != detail::phase::ended)
        detail::release_in_background(*core_, lock_record::from_claim(record_));
}

const std::string& lock::key() const noexcept
{
    return record_ ? record_->key() : no_key;
}

colock::token lock::token() const
{
    return record_ ? record_->token() : colock::token();
}

std::uint64_t lock::fence() const noexcept
{
    return record_ ? lock_record::from_claim(record_).lease_state().fence : 0;
}

lock_mode lock::mode() const noexcept
{
    return record_ ? record_->mode() : lock_mode::exclusive;
}

std::chrono::milliseconds lock::ttl() const noexcept
{
    return record_ ? record_->ttl() : std::chrono::milliseconds(0);
}

lease_clock::time_point lock::expires_at() const noexcept
{
    return record_ ? record_->lease().valid_until() : lease_clock::time_point{};
}

std::chrono::nanoseconds lock::valid_for() const noexcept
{
    const auto now = lease_clock::now();
    if (!record_ || lock_record::from_claim(record_).current_phase() != detail::phase::held ||
        record_->lease().has_ended(now))
        return {};
    const auto end = record_->lease().valid_until();
    if (end == lease_clock::time_point::max())
        return std::chrono::nanoseconds::max();
    return end > now ? end - now : std::chrono::nanoseconds(0); // the session may just have ended
}

bool lock::held() const noexcept
{
    return valid_for() > std::chrono::nanoseconds(0);
}

asio::any_io_executor lock::executor() const
{
    throw_if_empty(record_);
    return core_->executor();
}

namespace {

lock_record::ptr record_of(const claim_ptr& claim)
{
    return lock_record::ptr(&lock_record::from_claim(claim));
}

/// An operation of an empty lock. The error is thrown when the operation is awaited.
template <class T>
asio::awaitable<T> refuse_empty()
{
    throw_if_empty({});
    co_return T{};
}

template <>
asio::awaitable<void> refuse_empty<void>()
{
    throw_if_empty({});
    co_return;
}

asio::awaitable<void> nothing_to_release()
{
    co_return;
}

} // namespace

asio::awaitable<bool> lock::is_locked() const
{
    return record_ ? detail::operations::is_valid(core_, record_of(record_)) : refuse_empty<bool>();
}

asio::awaitable<void> lock::extend(std::chrono::milliseconds ttl)
{
    return record_ ? detail::operations::extend(core_, record_of(record_), ttl) : refuse_empty<void>();
}

asio::awaitable<void> lock::release(on_failure report)
{
    if (record_)
        return detail::operations::release(core_, record_of(record_), report);
    return report == on_failure::raise ? refuse_empty<void>() : nothing_to_release();
}

asio::awaitable<std::string> lock::detach()
{
    return run_detach(record_, core_);
}

asio::awaitable<lost_reason> lock::lost() const
{
    return record_ ? detail::operations::lost(core_, record_of(record_)) : refuse_empty<lost_reason>();
}

// The `async_` functions of an empty lock throw before they begin, because an empty lock has no executor.

void lock::start_is_locked(const claim_ptr& record, const core_ptr& core, detail::operation_handler<bool> handler)
{
    detail::operations::start_is_valid(std::move(handler), core, record_of(record));
}

void lock::start_extend(const claim_ptr& record, const core_ptr& core, std::chrono::milliseconds ttl,
    detail::operation_handler<void> handler)
{
    detail::operations::start_extend(std::move(handler), core, record_of(record), ttl);
}

void lock::start_lost(const claim_ptr& record, const core_ptr& core, detail::operation_handler<lost_reason> handler)
{
    detail::operations::start_lost(std::move(handler), core, record_of(record));
}

detail::initiation_executor lock::release_initiation::get_executor() const noexcept
{
    return detail::initiation_executor(core ? core->executor() : asio::any_io_executor(asio::system_executor()));
}

void lock::release_initiation::start(detail::operation_handler<void> handler)
{
    if (record) {
        detail::operations::start_release(std::move(handler), core, record_of(record), report);
        return;
    }
    std::exception_ptr failure;
    try {
        if (report == on_failure::raise)
            throw_if_empty(record);
    } catch (...) {
        failure = std::current_exception();
    }
    detail::complete_operation(failure, std::move(handler));
}

asio::awaitable<std::string> lock::run_detach(claim_ptr claim, core_ptr core)
{
    return claim ? detail::operations::detach(std::move(core), lock_record::take_from_claim(std::move(claim)))
                 : refuse_empty<std::string>();
}

} // namespace colock::inline v0
