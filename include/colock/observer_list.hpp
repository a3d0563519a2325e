// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/observer.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0 {

/// An observer that forwards each event to several observers, in the order of the list. For example, a locker can have
/// a logging_observer and metrics. Thread-safe if all of them are.
class COLOCK_EXPORT observer_list : public observer
{
public:
    /// \throws validation_error `invalid_options` if one of the pointers is null
    explicit observer_list(std::vector<std::shared_ptr<observer>> observers);
    /// Makes a list of the given observers, which are separate arguments.
    template <std::convertible_to<std::shared_ptr<observer>>... Observers>
        requires(sizeof...(Observers) > 0)
    explicit observer_list(Observers... observers)
        : observer_list(std::vector<std::shared_ptr<observer>>{std::move(observers)...})
    {
    }

    void ready(std::string_view backend) noexcept override;
    void unreachable(std::string_view backend, const error_code& error, std::string_view address,
        std::string_view detail) noexcept override;
    void suspended(std::string_view backend, const error_code& error) noexcept override;
    void reconnected(std::string_view backend) noexcept override;
    void warning(std::string_view backend, std::string_view message) noexcept override;
    void waiting(std::string_view key) noexcept override;
    void possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
        const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept override;
    void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept override;
    void not_granted(std::string_view key, const error_code& error, std::chrono::nanoseconds waited) noexcept override;
    void renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept override;
    void at_risk(std::string_view key, const error_code& error) noexcept override;
    void lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept override;
    void released(std::string_view key, std::chrono::nanoseconds held_for) noexcept override;
    void elected(std::string_view key, std::uint64_t term) noexcept override;
    void resigned(std::string_view key, std::uint64_t term) noexcept override;
    void deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept override;
    void settled(std::string_view key, bool proven) noexcept override;

private:
    std::vector<std::shared_ptr<observer>> observers_;
};

} // namespace colock::inline v0
