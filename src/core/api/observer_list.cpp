// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/observer_list.hpp>

#include "util/option_errors.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0 {

observer_list::observer_list(std::vector<std::shared_ptr<observer>> observers) : observers_(std::move(observers))
{
    if (std::ranges::find(observers_, nullptr) != observers_.end())
        detail::refuse_options({}, "an observer of the observer_list is null; leave it out");
}

void observer_list::ready(std::string_view backend) noexcept
{
    for (const auto& each : observers_)
        each->ready(backend);
}

void observer_list::unreachable(
    std::string_view backend, const error_code& error, std::string_view address, std::string_view detail) noexcept
{
    for (const auto& each : observers_)
        each->unreachable(backend, error, address, detail);
}

void observer_list::suspended(std::string_view backend, const error_code& error) noexcept
{
    for (const auto& each : observers_)
        each->suspended(backend, error);
}

void observer_list::reconnected(std::string_view backend) noexcept
{
    for (const auto& each : observers_)
        each->reconnected(backend);
}

void observer_list::warning(std::string_view backend, std::string_view message) noexcept
{
    for (const auto& each : observers_)
        each->warning(backend, message);
}

void observer_list::waiting(std::string_view key) noexcept
{
    for (const auto& each : observers_)
        each->waiting(key);
}

void observer_list::possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
    const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept
{
    for (const auto& each : observers_)
        each->possible_deadlock(key, held_for, acquired_at, waiting_at);
}

void observer_list::granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept
{
    for (const auto& each : observers_)
        each->granted(key, fence, waited);
}

void observer_list::not_granted(std::string_view key, const error_code& error, std::chrono::nanoseconds waited) noexcept
{
    for (const auto& each : observers_)
        each->not_granted(key, error, waited);
}

void observer_list::renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept
{
    for (const auto& each : observers_)
        each->renewed(key, valid_for);
}

void observer_list::at_risk(std::string_view key, const error_code& error) noexcept
{
    for (const auto& each : observers_)
        each->at_risk(key, error);
}

void observer_list::lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept
{
    for (const auto& each : observers_)
        each->lost(key, reason, held_for);
}

void observer_list::released(std::string_view key, std::chrono::nanoseconds held_for) noexcept
{
    for (const auto& each : observers_)
        each->released(key, held_for);
}

void observer_list::elected(std::string_view key, std::uint64_t term) noexcept
{
    for (const auto& each : observers_)
        each->elected(key, term);
}

void observer_list::resigned(std::string_view key, std::uint64_t term) noexcept
{
    for (const auto& each : observers_)
        each->resigned(key, term);
}

void observer_list::deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept
{
    for (const auto& each : observers_)
        each->deposed(key, term, reason);
}

void observer_list::settled(std::string_view key, bool proven) noexcept
{
    for (const auto& each : observers_)
        each->settled(key, proven);
}

} // namespace colock::inline v0
