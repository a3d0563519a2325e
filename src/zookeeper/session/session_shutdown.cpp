// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The end of a session: it is closed at the server, abandoned, or dropped with its context.
#include "zookeeper/session/session.hpp"
#include "zookeeper/session/session_runtime.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::inline v0::zookeeper::detail {

void session::close(lease_clock::duration deadline, completion<bool> done)
{
    if (!runtime_ || phase_ == phase::over || phase_ == phase::closing) {
        done(phase_ == phase::over);
        return;
    }
    const bool can_ask = can_send();
    while (requests_.flush()) {
    }
    runtime_->on_closed = std::move(done);
    // Without a session there is nothing to close.
    const bool has_none = life_.id() == 0;
    phase_ = phase::closing;
    if (!can_ask) {
        asio::post(runtime_->strand, [self = shared_from_this(), has_none] {
            if (self->runtime_)
                self->finish_close(has_none);
        });
        return;
    }
    runtime_->close_timer.expires_after(deadline);
    runtime_->close_timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error && self->runtime_)
            self->finish_close(false);
    });
    runtime_->check_timer.cancel();
    asio::post(runtime_->strand, [self = shared_from_this()] { self->continue_closing(false); });
}

void session::continue_closing(bool reads)
{
    if (!runtime_ || phase_ != phase::closing || !zk_client_)
        return;
    auto& run = *runtime_;
    run.socket.uncork();
    auto& socket = run.socket.waiter();
    const auto progress = reads ? run.closer.read_rest(socket) : run.closer.flush(*zk_client_, socket);
    if (progress == session_closer::progress::confirmed || progress == session_closer::progress::failed)
        finish_close(progress == session_closer::progress::confirmed);
    else
        wait_for_readiness(progress == session_closer::progress::wants_write);
}

void session::finish_close(bool proven)
{
    const auto self = shared_from_this();
    runtime_->is_proven = proven;
    shut_down();
    deliver();
}

void session::abandon()
{
    if (!runtime_ || phase_ == phase::over)
        return;
    const auto self = shared_from_this();
    shut_down();
    deliver_rest();
}

void session::deliver_rest()
{
    if (!dispatcher_.empty() || runtime_->on_closed)
        post_step();
}

void session::shut_down() noexcept
{
    phase_ = phase::over;
    auto unsent = requests_.take_unsent();
    dispatcher_.add(unsent);
    life_.end();
    if (runtime_) {
        runtime_->check_timer.cancel();
        runtime_->retry_timer.cancel();
        runtime_->close_timer.cancel();
        runtime_->servers->cancel();
        // On an open connection the driver would wait for a reply.
        if (generation_ != colock::detail::generation.load())
            runtime_->socket.waiter().detach();
        else
            runtime_->socket.waiter().shut_down();
        runtime_->socket.waiter().drop();
    }
    if (zk_client_) {
        zk_client_->close();
        auto rest = zk_client_->take_reports();
        dispatcher_.add(rest);
        zk_client_.reset();
    }
}

void session::context_shutdown() noexcept
{
    const auto self = shared_from_this();
    shut_down();
    dispatcher_.drop();
    runtime_.reset();
}

} // namespace colock::inline v0::zookeeper::detail
