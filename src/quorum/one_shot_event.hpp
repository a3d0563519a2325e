// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/completion.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::quorum {

/// An event that one coroutine of the strand waits for. The coroutine owns the event.
///
/// A suspended coroutine must be destroyed before its context, but the answers of the nodes may outlive the context. So
/// the answers have weak references, and the adapter lists the events that coroutines wait for.
///
/// Thread safety: none; belongs to the strand of the quorum.
class one_shot_event
    : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>
{
public:
    using list = boost::intrusive::list<one_shot_event, boost::intrusive::constant_time_size<false>>;

    explicit one_shot_event(list& awaited) : awaited_(awaited) {}

    /// Resumes the coroutine inside the call. Must be called once, on the strand.
    void set();
    /// Returns when the event is set.
    [[nodiscard]] asio::awaitable<void> wait();
    /// Destroys the coroutines that wait.
    static void destroy_waiting(list& awaited) noexcept;

private:
    list& awaited_;
    bool is_set_ = false;
    asio::any_completion_handler<void(std::exception_ptr)> handler_;
};

/// Starts `count` operations at the same time, and returns all outcomes in the order of the operations.
/// \param start called with the index and the completion of each operation; the completion must be called on the strand
template <class Outcome, class Start>
asio::awaitable<std::vector<Outcome>> await_all(one_shot_event::list& awaited, std::size_t count, Start start)
{
    struct answers
    {
        answers(one_shot_event::list& list, std::size_t size) : all_answered(list), outcomes(size), missing(size) {}

        one_shot_event all_answered;
        std::vector<Outcome> outcomes;
        std::size_t missing;
    };
    const auto all = std::make_shared<answers>(awaited, count);
    for (std::size_t i = 0; i < count; ++i) {
        start(i, completion<Outcome>([weak = std::weak_ptr(all), i](Outcome outcome) {
            const auto counted = weak.lock();
            if (!counted)
                return;
            counted->outcomes[i] = std::move(outcome);
            if (--counted->missing == 0)
                counted->all_answered.set();
        }));
    }
    co_await all->all_answered.wait();
    co_return std::move(all->outcomes);
}

} // namespace colock::inline v0::quorum
