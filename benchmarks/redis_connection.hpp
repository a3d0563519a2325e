// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

/// A plain, blocking connection to a Redis server. Replies are read as lines.
class redis_connection
{
public:
    redis_connection(const std::string& host, const std::string& port)
    {
        using boost::asio::ip::tcp;
        boost::asio::connect(socket_, tcp::resolver(io_).resolve(host, port));
        socket_.set_option(tcp::no_delay(true));
    }

    /// Appends a command to the buffer that `flush` sends.
    void add_command(std::initializer_list<std::string_view> words)
    {
        ((out_ += '*') += std::to_string(words.size())) += "\r\n";
        for (const std::string_view word : words) {
            ((out_ += '$') += std::to_string(word.size())) += "\r\n";
            (out_ += word) += "\r\n";
        }
    }
    void flush()
    {
        boost::asio::write(socket_, boost::asio::buffer(out_));
        out_.clear();
    }
    std::string read_line()
    {
        const auto size = boost::asio::read_until(socket_, boost::asio::dynamic_buffer(rest_), "\r\n");
        std::string found = rest_.substr(0, size - 2);
        rest_.erase(0, size);
        return found;
    }
    /// Waits for data, and calls `use` with each line that is complete.
    template <class Use>
    void read_lines(Use use)
    {
        const auto size = socket_.read_some(boost::asio::buffer(chunk_));
        rest_.append(chunk_.data(), size);
        std::size_t start = 0;
        for (auto end = rest_.find('\n'); end != rest_.npos; end = rest_.find('\n', start)) {
            use(std::string_view(rest_).substr(start, end - 1 - start));
            start = end + 1;
        }
        rest_.erase(0, start);
    }
    /// Sends a command and reads the first line of its reply.
    std::string ask(std::initializer_list<std::string_view> words)
    {
        add_command(words);
        flush();
        return read_line();
    }

private:
    boost::asio::io_context io_;
    boost::asio::ip::tcp::socket socket_{io_};
    std::string out_;
    std::string rest_;
    std::array<char, 65536> chunk_{};
};

inline void expect(bool condition, std::string_view answer)
{
    if (!condition)
        throw std::runtime_error("the server answered " + std::string(answer));
}

} // namespace bench
