// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set.hpp>

#include <cstdint>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::detail {

class waitable;
struct all_parked_tag;
using auto_unlink = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;

/// A coroutine that is suspended until something changes. Lives in that coroutine's frame.
struct parked : boost::intrusive::list_base_hook<auto_unlink>,
                boost::intrusive::list_base_hook<boost::intrusive::tag<all_parked_tag>, auto_unlink>
{
    waitable* source = nullptr;
    /// Not to be parked any longer, once its core takes no new acquires.
    bool ends_when_closed = false;
    asio::any_io_executor executor{};
    asio::any_completion_handler<void(error_code)> handler{};
};

/// All that are suspended in one core, whatever they wait for.
using parking_lot = boost::intrusive::list<parked,
    boost::intrusive::base_hook<boost::intrusive::list_base_hook<boost::intrusive::tag<all_parked_tag>, auto_unlink>>,
    boost::intrusive::constant_time_size<false>>;

/// Handlers that were taken out under the shard's mutex and are resumed, or destroyed, after it is free again.
class wake_list
{
public:
    void add(parked& waiter, error_code why = {});
    /// Posts each to its coroutine's executor.
    void resume();
    /// Destroys them: their execution context is gone, so nothing may be posted to it.
    void destroy() noexcept { woken_.clear(); }
    [[nodiscard]] bool empty() const noexcept { return woken_.empty(); }

private:
    struct woken
    {
        asio::any_io_executor executor;
        asio::any_completion_handler<void(error_code)> handler;
        error_code why;
    };
    boost::container::small_vector<woken, 2> woken_;
};

struct timer_tag;

/// Something that coroutines wait on, and that can be told of a point in time. All of it is guarded by the core's
/// mutex.
///
/// Waiting works as with a condition variable: a coroutine reads `version`, looks at the state, and parks unless the
/// version has moved since; every change moves the version and wakes all.
class waitable
    : public boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>
{
public:
    using time_point = lease_clock::time_point;

    /// A version that never is: who parks with it is resumed at once, by a post.
    static constexpr std::uint32_t outdated = 0xffffffff;

    boost::intrusive::list<parked, boost::intrusive::base_hook<boost::intrusive::list_base_hook<auto_unlink>>,
        boost::intrusive::constant_time_size<false>>
        waiters;
    std::uint32_t version = 0;
    /// When it is due, those who wait for it are woken, and that is all.
    const bool only_wakes = false;
    /// When the timer heap tells it; max: not in the heap.
    time_point due = time_point::max();

    void touch() noexcept { version = (version + 1) & 0x7fffffff; }
    void notify(wake_list& wakes)
    {
        touch();
        while (!waiters.empty())
            wakes.add(waiters.front());
    }

    friend bool operator<(const waitable& left, const waitable& right) noexcept { return left.due < right.due; }

protected:
    waitable() = default;
    explicit waitable(bool wakes_only) : only_wakes(wakes_only) {}
    ~waitable() = default;
};

/// Something that coroutines wait on and that has no other meaning.
struct notice : waitable
{
    notice() : waitable(true) {}
};

} // namespace colock::detail
