// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/connection_failure.hpp"

#include <cerrno>
#include <charconv>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Returns the text after `mark`; empty if the mark is missing.
std::string_view text_after(std::string_view text, std::string_view mark)
{
    const auto at = text.find(mark);
    return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

} // namespace

std::optional<connection_failure> read_connection_failure(std::string_view log_line, bool was_shut_down)
{
    auto server = text_after(log_line, "Socket ");
    server = server.substr(0, server.find(" zk retcode="));
    if (server.starts_with('[') && server.ends_with(']'))
        server = server.substr(1, server.size() - 2);
    const auto number = text_after(log_line, "errno=");
    int code = 0;
    std::from_chars(number.data(), number.data() + number.size(), code);
    if (server.empty() || code == 0)
        return std::nullopt;
    const auto make_result = [&](std::string_view text, const boost::system::error_code& cause) {
        return connection_failure{std::string(server).append(": ").append(text), cause};
    };
    const boost::system::error_code cause(code, boost::system::system_category());
    // The driver reports the end of a stream with this code.
    if (code == EHOSTDOWN && !was_shut_down)
        return make_result("the server closed the connection", boost::asio::error::eof);
    if (was_shut_down || cause == boost::asio::error::timed_out)
        return make_result("no answer in time", boost::asio::error::timed_out);
    return make_result(cause.message(), cause);
}

} // namespace colock::inline v0::zookeeper::detail
