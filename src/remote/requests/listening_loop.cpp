// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/listening_loop.hpp"

#include "remote/policy/deadlines.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::inline v0::remote {

listening_loop::listening_loop(const asio::any_io_executor& strand, client_base& owner, connection_loop& requests,
    wait_sources& sources, lease_clock::duration linger)
    : strand_(strand), owner_(owner), sources_(sources), requests_(requests), linger_(linger), back_off_(strand)
{
}

void listening_loop::handle(event input)
{
    using kind = plan_type::action::kind;
    const auto action = plan_.resume(input, {.needed = !sources_.empty(), .requests = requests_.plan().current()});
    note_decision();
    switch (action.step) {
    case kind::none:
        return;
    case kind::connect:
        connect();
        return;
    case kind::connect_requests:
        requests_.handle(connection_loop::event::needed);
        return;
    case kind::listen:
        listen();
        return;
    case kind::listen_elsewhere:
        listen_elsewhere();
        return;
    case kind::close:
        disconnect();
        return;
    case kind::subscribe_again:
        sources_.begin_round();
        return;
    case kind::wait:
        back_off(action.delay);
        return;
    case kind::stop_waiting:
        back_off_.cancel();
        return;
    }
}

void listening_loop::back_off(lease_clock::duration delay)
{
    back_off_.expires_after(delay);
    back_off_.async_wait([self = owner_.keep(*this)](const error_code& error) {
        if (!error)
            self->handle(event::due);
    });
}

void listening_loop::sweep()
{
    const bool forgets_more = forget_unused();
    const bool ends_more = end_due_waits();
    handle(event::timer);
    if ((!forgets_more && !ends_more) || std::exchange(is_sweeping_, true))
        return;
    asio::post(strand_, [self = owner_.keep(*this)] {
        self->is_sweeping_ = false;
        self->sweep();
        self->owner_.arm_timer();
    });
}

bool listening_loop::forget_unused()
{
    const bool lingers = !requests_.plan().retired() && !requests_.plan().closes();
    const auto unused =
        sources_.forget_unused(lease_clock::now(), lingers ? linger_ : lease_clock::duration::zero(), max_per_handler);
    if (!unused.requested.empty() && plan_.ready() && !sources_.empty())
        stop_listening(unused.requested);
    return unused.more;
}

bool listening_loop::end_due_waits()
{
    const auto longest = longest_wait();
    if (!longest)
        return false;
    bool more = false;
    if (plan_.polls()) {
        // These waits began before it was known that waiters must poll.
        const auto unknown = sources_.take_unrequested(max_per_handler);
        more = !unknown.empty();
        wake_all(sources_.wake(unknown));
    }
    auto due = sources_.take_due(lease_clock::now() - *longest, max_per_handler);
    more = more || due.size() >= max_per_handler;
    wake_all(std::move(due));
    return more;
}

} // namespace colock::inline v0::remote
