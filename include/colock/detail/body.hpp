// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/detail/wrapped_handler.hpp>
#include <colock/keys.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace colock::inline v0::detail {

class core;

template <class T>
struct unwrap_awaitable
{
    using type = T;
    static constexpr bool awaited = false;
};
template <class T>
struct unwrap_awaitable<asio::awaitable<T, asio::any_io_executor>>
{
    using type = T;
    static constexpr bool awaited = true;
};

/// Whether the first argument of a `with_lock` is one key.
template <class Keys>
concept single_key = std::convertible_to<Keys, std::string_view>;

/// The key or the keys of a `with_lock`.
template <class Keys>
using keys_of = std::conditional_t<single_key<Keys>, std::string, group_members>;

/// The type of the argument of a `with_lock` body: a lock for one key, a group for several keys.
template <class Keys>
using held_by = std::conditional_t<single_key<Keys>, lock, lock_group>;

/// The body of a function that has a second form with options before the body, and a token after the body.
template <class Body>
concept no_options = !std::same_as<Body, acquire_options>;

template <class Body, class Held>
constexpr bool takes_lock = std::invocable<Body&, Held&>;

/// The result of calling a body; void if the body cannot be called, because a refused body needs a result, too.
template <class Body, class Held>
struct body_return
{
    using type = void;
};
template <class Body, class Held>
    requires(!takes_lock<Body, Held> && std::invocable<Body&>)
struct body_return<Body, Held>
{
    using type = std::invoke_result_t<Body&>;
};
template <class Body, class Held>
    requires takes_lock<Body, Held>
struct body_return<Body, Held>
{
    using type = std::invoke_result_t<Body&, Held&>;
};

template <class Body, class Held>
using unwrapped_return_t = typename unwrap_awaitable<typename body_return<Body, Held>::type>::type;

/// The result of a body, without the awaitable; void for a reference, which is refused.
template <class Body, class Held>
using body_result_t =
    std::conditional_t<std::is_reference_v<unwrapped_return_t<Body, Held>>, void, unwrapped_return_t<Body, Held>>;

/// Refuses wrong arguments of a `with_lock`, each with a sentence.
template <class Keys, class Body>
consteval bool accepts_body()
{
    using result = body_result_t<Body, held_by<Keys>>;
    constexpr bool are_keys = std::constructible_from<keys_of<Keys>, Keys>;
    constexpr bool is_movable = std::move_constructible<Body>;
    constexpr bool is_callable = takes_lock<Body, held_by<Keys>> || std::invocable<Body&>;
    constexpr bool is_value = !std::is_reference_v<unwrapped_return_t<Body, held_by<Keys>>>;
    constexpr bool is_movable_result = std::is_void_v<result> || std::move_constructible<result>;
    static_assert(are_keys, "the first argument is a key, or several keys: a list in braces or a range of strings");
    static_assert(is_movable, "the body can neither be moved nor copied");
    static_assert(is_callable, "the body takes nothing, or colock::lock& (with several keys colock::lock_group&)");
    static_assert(is_value, "the body returns a reference: let it return a value or a pointer");
    static_assert(is_movable_result, "the result of the body can neither be moved nor copied");
    return are_keys && is_movable && is_callable && is_value && is_movable_result;
}

/// The same for an `async_with_lock`, whose handler gets a default-constructed result with an exception.
template <class Keys, class Body>
consteval bool accepts_async_body()
{
    using result = body_result_t<Body, held_by<Keys>>;
    constexpr bool has_default = std::is_void_v<result> || std::default_initializable<result>;
    static_assert(has_default, "the result of the body has no default constructor: let the body return an optional");
    return accepts_body<Keys, Body>() && has_default;
}

template <class Body, class Held>
using body_signature_t = exception_signature_t<operation_signature_t<body_result_t<Body, Held>>>;

/// The result of a `try_with_lock`: that of the body, or for a body without a result whether the body was run.
template <class Body, class Held>
using try_result_t =
    std::conditional_t<std::is_void_v<body_result_t<Body, Held>>, bool, std::optional<body_result_t<Body, Held>>>;
template <class Body, class Held>
using try_signature_t = exception_signature_t<operation_signature_t<try_result_t<Body, Held>>>;

/// Reference to a body and its result, without their types. Exactly one of the two function pointers is null.
template <class Held>
struct body_ref
{
    void* object;
    /// Runs a body that returns an awaitable.
    asio::awaitable<void> (*run)(void* object, Held& held);
    /// Calls a body that returns a plain value or nothing.
    void (*call)(void* object, Held& held);
};

// The part of `with_lock` and `try_with_lock` that does not depend on the type of the body. Returns false if the lock
// is busy after `within`, and the body was not run; without `within` always true. Defined in
// src/core/operations/with_lock.cpp.
COLOCK_EXPORT asio::awaitable<bool> run_with_lock(std::shared_ptr<core> core, std::string key,
    std::optional<lease_clock::duration> within, acquire_options options, body_ref<lock> body);
COLOCK_EXPORT asio::awaitable<bool> run_with_lock(std::shared_ptr<core> core, group_members keys,
    std::optional<lease_clock::duration> within, acquire_options options, body_ref<lock_group> body);

template <class Body, class Held>
class body_slot
{
public:
    using result_type = body_result_t<Body, Held>;
    using stored_type = std::conditional_t<std::is_void_v<result_type>, std::monostate, result_type>;

    explicit body_slot(Body function) : body(std::move(function)) {}

    Body body;
    std::optional<stored_type> result;

    [[nodiscard]] body_ref<Held> ref() noexcept
    {
        if constexpr (unwrap_awaitable<typename body_return<Body, Held>::type>::awaited)
            return {this, &run, nullptr};
        else
            return {this, nullptr, &call};
    }

    result_type take()
    {
        if constexpr (!std::is_void_v<result_type>)
            return std::move(*result);
    }

private:
    typename body_return<Body, Held>::type invoke(Held& held)
    {
        if constexpr (takes_lock<Body, Held>)
            return body(held);
        else
            return body();
    }
    static asio::awaitable<void> run(void* object, Held& held)
    {
        auto& self = *static_cast<body_slot*>(object);
        if constexpr (std::is_void_v<result_type>)
            co_await self.invoke(held);
        else
            self.result.emplace(co_await self.invoke(held));
    }
    static void call(void* object, Held& held)
    {
        auto& self = *static_cast<body_slot*>(object);
        if constexpr (std::is_void_v<result_type>)
            self.invoke(held);
        else
            self.result.emplace(self.invoke(held));
    }
};

template <class Keys, class Body>
asio::awaitable<body_result_t<Body, held_by<Keys>>> run_slot(
    std::shared_ptr<core> core, Keys keys, acquire_options options, Body body)
{
    body_slot<Body, held_by<Keys>> slot(std::move(body));
    co_await run_with_lock(std::move(core), std::move(keys), std::nullopt, std::move(options), slot.ref());
    co_return slot.take();
}

template <class Keys, class Body>
asio::awaitable<try_result_t<Body, held_by<Keys>>> try_run_slot(
    std::shared_ptr<core> core, Keys keys, lease_clock::duration within, acquire_options options, Body body)
{
    body_slot<Body, held_by<Keys>> slot(std::move(body));
    const bool has_run =
        co_await run_with_lock(std::move(core), std::move(keys), within, std::move(options), slot.ref());
    if constexpr (std::is_void_v<body_result_t<Body, held_by<Keys>>>)
        co_return has_run;
    else
        co_return std::move(slot.result);
}

// After wrong arguments were refused, the functions below return an awaitable that is never run, so that the compiler
// has no second error.

template <class Keys, class Body>
asio::awaitable<body_result_t<Body, held_by<Keys>>> with_lock(
    std::shared_ptr<core> core, Keys&& keys, acquire_options options, Body body)
{
    if constexpr (accepts_body<Keys, Body>())
        return run_slot(std::move(core), keys_of<Keys>(std::forward<Keys>(keys)), std::move(options), std::move(body));
    else
        return {};
}

template <class Keys, class Body>
asio::awaitable<try_result_t<Body, held_by<Keys>>> try_with_lock(
    std::shared_ptr<core> core, Keys&& keys, lease_clock::duration within, acquire_options options, Body body)
{
    if constexpr (accepts_body<Keys, Body>())
        return try_run_slot(
            std::move(core), keys_of<Keys>(std::forward<Keys>(keys)), within, std::move(options), std::move(body));
    else
        return {};
}

/// Runs the body of an `async_` function. The slot is shared between this coroutine and the completion of the
/// operation.
/// \tparam Result void, or bool for whether the body was run
template <class Result, class Keys, class Body>
asio::awaitable<Result> with_shared_body(std::shared_ptr<core> core, Keys keys,
    std::optional<lease_clock::duration> within, acquire_options options,
    std::shared_ptr<body_slot<Body, held_by<Keys>>> slot)
{
    [[maybe_unused]] const bool has_run =
        co_await run_with_lock(std::move(core), std::move(keys), within, std::move(options), slot->ref());
    if constexpr (!std::is_void_v<Result>)
        co_return has_run;
}

/// Completion handler of an `async_` function whose body returns a value. Its associated characteristics are those of
/// the caller's handler.
/// \tparam IsLimited whether the function is `async_try_with_lock`, whose result is optional
template <class Handler, class Slot, bool IsLimited>
struct body_completion
{
    using wrapped_handler_type = wrapped_handler<Handler>;
    Handler handler;
    std::shared_ptr<Slot> slot;

    void operator()(std::exception_ptr failure)
    {
        using result_type = typename Slot::result_type;
        auto result = std::move(slot->result);
        slot.reset();
        // The body may have returned a value after the lock was lost.
        if (failure)
            result.reset();
        if constexpr (IsLimited)
            std::move(handler)(std::move(failure), std::move(result));
        else
            std::move(handler)(std::move(failure), result ? std::move(*result) : result_type{});
    }
};

template <class Keys, class Body, bool IsLimited>
struct with_lock_initiation
{
    using executor_type = initiation_executor;
    using slot_type = body_slot<Body, held_by<Keys>>;
    std::shared_ptr<core> core_;
    executor_type executor;
    Keys keys;
    std::optional<lease_clock::duration> within;
    acquire_options options;
    Body body;

    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(Handler&& handler)
    {
        auto slot = std::make_shared<slot_type>(std::move(body));
        constexpr bool has_result = !std::is_void_v<typename slot_type::result_type>;
        using returned = std::conditional_t<IsLimited && !has_result, bool, void>;
        auto coroutine =
            with_shared_body<returned, Keys, Body>(std::move(core_), std::move(keys), within, std::move(options), slot);
        if constexpr (has_result) {
            run_coroutine<void>(executor, std::move(coroutine),
                body_completion<std::decay_t<Handler>, slot_type, IsLimited>{
                    std::forward<Handler>(handler), std::move(slot)});
        } else {
            run_coroutine<returned>(executor, std::move(coroutine), std::forward<Handler>(handler));
        }
    }
};

template <class Keys, class Body, class CompletionToken>
auto async_with_lock(std::shared_ptr<core> core, asio::any_io_executor executor, Keys&& keys, acquire_options options,
    Body body, CompletionToken&& completion_token)
{
    if constexpr (accepts_async_body<Keys, Body>())
        return initiate<body_signature_t<Body, held_by<Keys>>>(
            with_lock_initiation<keys_of<Keys>, Body, false>{std::move(core), initiation_executor(std::move(executor)),
                keys_of<Keys>(std::forward<Keys>(keys)), std::nullopt, std::move(options), std::move(body)},
            std::forward<CompletionToken>(completion_token));
    else
        return asio::awaitable<body_result_t<Body, held_by<Keys>>>();
}

template <class Keys, class Body, class CompletionToken>
auto async_try_with_lock(std::shared_ptr<core> core, asio::any_io_executor executor, Keys&& keys,
    lease_clock::duration within, acquire_options options, Body body, CompletionToken&& completion_token)
{
    if constexpr (accepts_body<Keys, Body>())
        return initiate<try_signature_t<Body, held_by<Keys>>>(
            with_lock_initiation<keys_of<Keys>, Body, true>{std::move(core), initiation_executor(std::move(executor)),
                keys_of<Keys>(std::forward<Keys>(keys)), within, std::move(options), std::move(body)},
            std::forward<CompletionToken>(completion_token));
    else
        return asio::awaitable<try_result_t<Body, held_by<Keys>>>();
}

} // namespace colock::inline v0::detail
