// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/peer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <list>
#include <utility>

namespace colock::testing {

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

} // namespace

asio::awaitable<bool> peer::talk::hear()
{
    char part[4096];
    const auto [code, size] = co_await socket_.async_read_some(asio::buffer(part), as_result);
    heard_.append(part, size);
    co_return !code;
}

asio::awaitable<bool> peer::talk::hear(std::string_view word)
{
    for (;;) {
        if (const auto at = heard_.find(word); at != std::string::npos) {
            heard_.erase(0, at + word.size());
            co_return true;
        }
        if (!co_await hear())
            co_return false;
    }
}

asio::awaitable<std::string> peer::talk::hear_bytes(std::size_t count)
{
    while (heard_.size() < count) {
        if (!co_await hear())
            co_return std::string();
    }
    auto text = heard_.substr(0, count);
    heard_.erase(0, count);
    co_return text;
}

asio::awaitable<void> peer::talk::say(std::string_view text)
{
    // An error is ignored here: the next read reports a closed connection.
    co_await asio::async_write(socket_, asio::buffer(text), as_result);
}

struct peer::state
{
    state(asio::io_context& io, service what)
        : serve(std::move(what)), listener(io, {asio::ip::address_v4::loopback(), 0})
    {
    }

    static asio::awaitable<void> accept(std::shared_ptr<state> self)
    {
        for (;;) {
            auto [code, socket] = co_await self->listener.async_accept(as_result);
            if (code)
                co_return;
            ++self->connections;
            boost::system::error_code ignored;
            socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            const auto place = self->open.emplace(self->open.end(), std::move(socket));
            asio::co_spawn(self->listener.get_executor(), serve_connection(self, place), asio::detached);
        }
    }
    static asio::awaitable<void> serve_connection(std::shared_ptr<state> self, std::list<talk>::iterator place)
    {
        co_await self->serve(*place);
        self->open.erase(place);
    }

    service serve;
    asio::ip::tcp::acceptor listener;
    std::list<talk> open;
    std::size_t connections = 0;
};

peer::peer(asio::io_context& io, service serve) : state_(std::make_shared<state>(io, std::move(serve)))
{
    asio::co_spawn(io, state::accept(state_), asio::detached);
}

peer::~peer()
{
    close();
}

std::uint16_t peer::port() const
{
    return state_->listener.local_endpoint().port();
}

std::size_t peer::connections() const noexcept
{
    return state_->connections;
}

void peer::close()
{
    boost::system::error_code ignored;
    state_->listener.close(ignored);
    for (auto& each : state_->open)
        each.socket_.close(ignored);
}

} // namespace colock::testing
