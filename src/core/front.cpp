// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/front.hpp>

#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/stats.hpp>
#include <colock/status.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>

#include <optional>
#include <vector>

namespace colock::detail {

namespace {

error_code code_of(const std::exception_ptr& exception)
{
    if (!exception)
        return {};
    try {
        std::rethrow_exception(exception);
    } catch (const boost::system::system_error& failed) {
        return failed.code();
    } catch (...) {
        // Only a custom retry function can throw anything else; its exception does not fit an error_code.
        return errc::invalid_retry;
    }
}

template <class T>
struct verb_completion
{
    verb_handler<T> handler;

    void operator()(const std::exception_ptr& exception, T result)
    {
        std::move(handler)(code_of(exception), std::move(result));
    }
};

template <>
struct verb_completion<void>
{
    verb_handler<void> handler;

    void operator()(const std::exception_ptr& exception) { std::move(handler)(code_of(exception)); }
};

/// A coroutine under co_spawn sees terminal cancellation only, and every type means the same to a verb. Cheaper than a
/// coroutine around it that changes the filter.
struct any_type_as_terminal
{
    asio::cancellation_signal signal;

    void operator()(asio::cancellation_type type)
    {
        if (type != asio::cancellation_type::none)
            signal.emit(asio::cancellation_type::terminal);
    }
};

} // namespace

} // namespace colock::detail

template <template <class, class> class Associator, class T, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::detail::verb_completion<T>, DefaultCandidate>
    : Associator<colock::detail::verb_handler<T>, DefaultCandidate>
{
    static auto get(const colock::detail::verb_completion<T>& completion) noexcept
    {
        return Associator<colock::detail::verb_handler<T>, DefaultCandidate>::get(completion.handler);
    }
    static auto get(const colock::detail::verb_completion<T>& completion, const DefaultCandidate& candidate) noexcept
    {
        return Associator<colock::detail::verb_handler<T>, DefaultCandidate>::get(completion.handler, candidate);
    }
};

namespace colock::detail {

template <class T>
void run_verb(const asio::any_io_executor& executor, asio::awaitable<T> verb, verb_handler<T> handler)
{
    // The context is gone, and the handler with it.
    if (!executor)
        return;
    asio::cancellation_slot slot;
    if (auto outer = asio::get_associated_cancellation_slot(handler); outer.is_connected())
        slot = outer.template emplace<any_type_as_terminal>().signal.slot();
    asio::co_spawn(asio::any_io_executor(asio::make_strand(executor)), std::move(verb),
        asio::bind_cancellation_slot(slot, verb_completion<T>{std::move(handler)}));
}

template void run_verb(const asio::any_io_executor&, asio::awaitable<void>, verb_handler<void>);
template void run_verb(const asio::any_io_executor&, asio::awaitable<bool>, verb_handler<bool>);
template void run_verb(const asio::any_io_executor&, asio::awaitable<lock>, verb_handler<lock>);
template void run_verb(
    const asio::any_io_executor&, asio::awaitable<std::optional<lock>>, verb_handler<std::optional<lock>>);
template void run_verb(const asio::any_io_executor&, asio::awaitable<lock_group>, verb_handler<lock_group>);
template void run_verb(const asio::any_io_executor&, asio::awaitable<lost_reason>, verb_handler<lost_reason>);
template void run_verb(
    const asio::any_io_executor&, asio::awaitable<std::vector<lock_status>>, verb_handler<std::vector<lock_status>>);
template void run_verb(const asio::any_io_executor&, asio::awaitable<shutdown_report>, verb_handler<shutdown_report>);

} // namespace colock::detail
