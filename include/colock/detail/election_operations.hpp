// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/body.hpp>
#include <colock/detail/export.hpp>
#include <colock/leadership.hpp>
#include <colock/options.hpp>

#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// The operations of `election`. Each one shares the state of the locker, so the election may be destroyed while it
/// runs. They are defined in src/core/operations/election.cpp.
namespace colock::inline v0::detail::operations {

COLOCK_EXPORT [[nodiscard]] asio::awaitable<void> run_terms(
    std::shared_ptr<core> self, std::string key, acquire_options options, body_ref<leadership> body);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<leadership> campaign(
    std::shared_ptr<core> self, std::string key, acquire_options options);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::optional<leader>> find_leader(
    std::shared_ptr<core> self, std::string key);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<leader> await_leader(
    std::shared_ptr<core> self, std::string key, std::uint64_t after_term);

} // namespace colock::inline v0::detail::operations

namespace colock::inline v0::detail {

/// Refuses wrong bodies of `election::lead`, each with a sentence.
template <class Body>
consteval bool accepts_leader_body()
{
    constexpr bool is_movable = std::move_constructible<Body>;
    constexpr bool is_callable = takes_lock<Body, leadership> || std::invocable<Body&>;
    constexpr bool is_coroutine =
        !is_callable || std::same_as<typename body_return<Body, leadership>::type, asio::awaitable<void>>;
    static_assert(is_movable, "the body can neither be moved nor copied");
    static_assert(is_callable, "the body takes nothing, or colock::leadership&");
    static_assert(is_coroutine, "the body is a coroutine without a result: it returns boost::asio::awaitable<void>");
    return is_movable && is_callable && is_coroutine;
}

template <class Body>
asio::awaitable<void> lead(std::shared_ptr<core> core, std::string key, acquire_options options, Body body)
{
    body_slot<Body, leadership> slot(std::move(body));
    co_await operations::run_terms(std::move(core), std::move(key), std::move(options), slot.ref());
}

} // namespace colock::inline v0::detail
