// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fake_server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/endian/conversion.hpp>

#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace colock::testing {

namespace {

constexpr std::size_t header_size = 16;
constexpr std::int32_t op_reply = 1;
constexpr std::int32_t op_query = 2004;
constexpr std::int32_t op_msg = 2013;

std::int32_t number_at(std::string_view message, std::size_t where)
{
    return boost::endian::load_little_s32(
        reinterpret_cast<const unsigned char*>(message.substr(where, sizeof(std::int32_t)).data()));
}

std::string to_bytes(std::int32_t number)
{
    std::string made(sizeof number, '\0');
    boost::endian::store_little_s32(reinterpret_cast<unsigned char*>(made.data()), number);
    return made;
}

mongo::detail::document document_at(std::string_view message, std::size_t where)
{
    mongo::detail::document found;
    const auto rest = message.substr(where);
    bson_t whole;
    if (!bson_init_static(&whole, reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size()))
        throw std::runtime_error("the message contains no valid document");
    bson_copy_to(&whole, found.overwrite());
    return found;
}

} // namespace

fake_server::fake_server(asio::io_context& io, command_handler on_command)
    : on_command_(std::move(on_command)), acceptor_(io, {asio::ip::address_v4::loopback(), 0})
{
    asio::co_spawn(io, listen(), asio::detached);
}

asio::awaitable<void> fake_server::listen()
{
    for (;;) {
        auto [failed, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
        if (failed)
            co_return;
        asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
}

asio::awaitable<void> fake_server::serve(asio::ip::tcp::socket socket)
{
    const auto number = ++connections_;
    // Ends with the exception of the read that fails when the client disconnects.
    for (;;) {
        std::string message(header_size, '\0');
        co_await asio::async_read(socket, asio::buffer(message), asio::use_awaitable);
        const auto size = static_cast<std::size_t>(number_at(message, 0));
        message.resize(size);
        co_await asio::async_read(socket, asio::buffer(message) + header_size, asio::use_awaitable);
        connection_ = number;
        const auto reply = answer_to(message);
        co_await asio::async_write(socket, asio::buffer(reply), asio::use_awaitable);
    }
}

std::string fake_server::answer_to(std::string_view message)
{
    const auto code = number_at(message, 12);
    // The document follows flags, a name and two numbers in OP_QUERY, and flags and the kind of the section in OP_MSG.
    const auto where = code == op_query ? message.find('\0', header_size + 4) + 1 + 8 : header_size + 4 + 1;
    const auto asked = document_at(message, where);
    bson_iter_t first;
    bson_iter_init(&first, asked.get());
    bson_iter_next(&first);
    const std::string_view command = bson_iter_key(&first);
    const auto reply = on_command_(command, asked);
    std::string body = code == op_query ? to_bytes(0) + std::string(8, '\0') + to_bytes(0) + to_bytes(1)
                                        : to_bytes(0) + std::string(1, '\0');
    body.append(reinterpret_cast<const char*>(bson_get_data(reply.get())), reply.get()->len);
    auto made = to_bytes(static_cast<std::int32_t>(header_size + body.size())) + to_bytes(1) +
                to_bytes(number_at(message, 4)) + to_bytes(code == op_query ? op_reply : op_msg) + body;
    if (on_reply_)
        on_reply_(command, made);
    return made;
}

} // namespace colock::testing
