// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <memory>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Lets threads that may not belong to a context post to that context while it is being destroyed. The destructor of
/// the context waits until they have left.
///
/// Thread safety: all members may be called from any thread.
class COLOCK_EXPORT context_gate
{
public:
    /// Returns the gate of the executor's context. The context must not have shut down.
    [[nodiscard]] static std::shared_ptr<context_gate> of(const asio::any_io_executor& executor);

    /// Returns false once the gate is closed. Otherwise the context is not destroyed before `leave` is called.
    [[nodiscard]] bool enter() noexcept
    {
        if ((add_to(state_, one_inside) & closed) == 0)
            return true;
        leave();
        return false;
    }
    void leave() noexcept
    {
        if (add_to(state_, -one_inside) == closed)
            state_.notify_all();
    }
    /// Waits until every thread that has entered has left. From now on, no thread enters.
    void close() noexcept;

    /// Calls `function` inside of the gate. Returns false, without a call, once the gate is closed.
    template <class Function>
    bool if_open(Function function)
    {
        if (!enter())
            return false;
        struct leave_guard
        {
            context_gate& gate;
            ~leave_guard() { gate.leave(); }
        };
        const leave_guard on_exit{*this};
        function();
        return true;
    }

private:
    static constexpr unsigned closed = 1;
    static constexpr unsigned one_inside = 2;

    /// Twice the number of threads inside, plus `closed`.
    std::atomic<unsigned> state_{0};
};

} // namespace colock::inline v0::detail
