// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "foreign_client.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace colock::testing {

foreign_client::foreign_client(asio::io_context& io, std::vector<std::string> command) : io_(io), socket_(io)
{
    asio::local::stream_protocol::socket theirs(io);
    asio::local::connect_pair(socket_, theirs);
    process_ = child_process(std::move(command), folder_ / "log", theirs.native_handle());
}

running<std::string> foreign_client::start_asking(std::string line)
{
    return start(io_, [](foreign_client& self, std::string question) -> asio::awaitable<std::string> {
        question += '\n';
        co_await asio::async_write(self.socket_, asio::buffer(question), asio::use_awaitable);
        std::string answer;
        co_await asio::async_read_until(self.socket_, asio::dynamic_buffer(answer), '\n', asio::use_awaitable);
        answer.pop_back();
        co_return answer;
    }(*this, std::move(line)));
}

} // namespace colock::testing
