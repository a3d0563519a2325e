// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace asio = boost::asio;

/// One client. It buys seats in random blocks until all blocks are sold out.
inline asio::awaitable<void> buy_everything(asio::ip::tcp::endpoint office, std::size_t blocks, unsigned seed)
{
    asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
    co_await socket.async_connect(office, asio::deferred);

    std::minstd_rand random(seed);
    std::vector<std::size_t> open(blocks);
    std::iota(open.begin(), open.end(), std::size_t{0});
    std::string answer;
    while (!open.empty()) {
        const auto choice = random() % open.size();
        const std::string question = std::to_string(open[choice]) + '\n';
        co_await asio::async_write(socket, asio::buffer(question), asio::deferred);
        const auto length =
            co_await asio::async_read_until(socket, asio::dynamic_buffer(answer, 64), '\n', asio::deferred);
        if (answer.starts_with("sold out"))
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(choice));
        answer.erase(0, length);
    }
}
