// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/lock.hpp>
#include <colock/options.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace colock::inline v0 {

/// The leader of an election, as the backend reports it.
struct COLOCK_EXPORT leader
{
    /// Name of the leader, see owner_data.
    std::string owner{};
    /// Host of the leader.
    std::string host{};
    /// The comment in the options of its election.
    std::string comment{};
    /// The term: the fence of the leader's lock.
    std::uint64_t term = 0;

    friend bool operator==(const leader&, const leader&) = default;
};

/// The lock of a leader, see `election::campaign`. Move-only; the destructor resigns.
///
/// `lost()` completes when the leadership has ended, and `held()` returns whether it has not, as far as this process
/// knows. Rules and thread safety are those of lock.
class COLOCK_EXPORT [[nodiscard]] leadership : public lock
{
public:
    /// Makes an empty leadership.
    leadership() noexcept = default;

    /// Returns the term: the fencing token of the lock. 0 if the backend has no fencing tokens.
    [[nodiscard]] std::uint64_t term() const noexcept { return fence(); }

    /// Gives up the leadership: releases the lock, see lock::release.
    [[nodiscard]] asio::awaitable<void> resign(on_failure report = on_failure::quiet) { return release(report); }

    /// `void(error_code)`, as lock::async_release.
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_resign(on_failure report, CompletionToken&& completion_token = CompletionToken())
    {
        return async_release(report, std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_resign(CompletionToken&& completion_token = CompletionToken())
    {
        return async_release(on_failure::quiet, std::forward<CompletionToken>(completion_token));
    }

private:
    friend class detail::core;

    explicit leadership(lock&& elected) noexcept : lock(std::move(elected)) {}
};

} // namespace colock::inline v0
