// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/happy_eyeballs.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <utility>

namespace colock::inline v0::remote {

namespace {

/// The delay between two attempts that RFC 8305 recommends.
constexpr std::chrono::milliseconds attempt_delay{250};

} // namespace

happy_eyeballs::happy_eyeballs(asio::any_io_executor strand) : strand_(std::move(strand)), next_start_(strand_) {}

void happy_eyeballs::run(std::vector<endpoint> endpoints, handler on_end)
{
    endpoints_ = std::move(endpoints);
    sockets_.reserve(endpoints_.size());
    handler_ = std::move(on_end);
    if (stopped_ || endpoints_.size() < 2)
        end(0);
    else
        start_next();
}

void happy_eyeballs::stop()
{
    stopped_ = true;
    if (handler_)
        end(0);
}

void happy_eyeballs::start_next()
{
    // A failed attempt may have started the last one before the timer fired.
    if (sockets_.size() == endpoints_.size())
        return;
    const auto which = sockets_.size();
    sockets_.emplace_back(strand_);
    sockets_.back().async_connect(
        endpoints_[which], [self = shared_from_this(), which](
                               const boost::system::error_code& failed) { self->on_connected(which, failed); });
    if (sockets_.size() == endpoints_.size())
        return;
    next_start_.expires_after(attempt_delay);
    next_start_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
        if (!cancelled && self->handler_)
            self->start_next();
    });
}

void happy_eyeballs::on_connected(std::size_t which, const boost::system::error_code& failed)
{
    if (!handler_)
        return;
    if (!failed)
        end(which);
    else if (++failure_count_ == endpoints_.size())
        end(0);
    else
        start_next();
}

void happy_eyeballs::end(std::size_t winner)
{
    next_start_.cancel();
    for (auto& each : sockets_) {
        boost::system::error_code ignored;
        each.close(ignored);
    }
    asio::post(strand_, asio::append(std::exchange(handler_, nullptr), winner));
}

} // namespace colock::inline v0::remote
