// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <memory>
#include <utility>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::detail {

/// The completion of a front's coroutine: has the caller's handler finished by `Finish`, on that handler's own executor
/// and with its allocator.
///
/// Its cancellation slot is not the caller's. What co_spawn keeps in a slot refers to the coroutine's strand, and a
/// strand must not outlive its context, as the caller's signal may: so that is kept in here, and the caller's signal
/// knows it weakly.
template <class Handler, class Finish>
class relayed
{
public:
    using cancellation_slot_type = asio::cancellation_slot;
    using handler_type = Handler;

    /// Every type means the same to a verb, and a coroutine under co_spawn sees terminal only: so it is sent that one,
    /// which is cheaper than a coroutine around it that changes the filter.
    explicit relayed(Handler handler) : handler_(std::move(handler))
    {
        auto outer = asio::get_associated_cancellation_slot(handler_);
        if (!outer.is_connected())
            return;
        inner_ = std::make_shared<asio::cancellation_signal>();
        outer.assign([weak = std::weak_ptr(inner_)](asio::cancellation_type type) {
            if (const auto inner = weak.lock(); inner && type != asio::cancellation_type::none)
                inner->emit(asio::cancellation_type::terminal);
        });
    }

    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
    {
        return inner_ ? inner_->slot() : cancellation_slot_type();
    }
    [[nodiscard]] const Handler& handler() const noexcept { return handler_; }

    template <class... Results>
    void operator()(Results... results)
    {
        Finish()(std::move(handler_), std::move(results)...);
    }

private:
    Handler handler_;
    std::shared_ptr<asio::cancellation_signal> inner_;
};

} // namespace colock::detail

template <template <class, class> class Associator, class Handler, class Finish, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::detail::relayed<Handler, Finish>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate>
{
    static auto get(const colock::detail::relayed<Handler, Finish>& completion) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler());
    }
    static auto get(
        const colock::detail::relayed<Handler, Finish>& completion, const DefaultCandidate& candidate) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler(), candidate);
    }
};
