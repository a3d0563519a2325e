// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "process.hpp"
#include "run.hpp"
#include "temporary_folder.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <source_location>
#include <string>
#include <vector>

namespace colock::testing {

/// A process that locks with another library. Each request is one line, and so is each answer.
class foreign_client
{
public:
    foreign_client(asio::io_context& io, std::vector<std::string> command);
    foreign_client(const foreign_client&) = delete;
    foreign_client& operator=(const foreign_client&) = delete;

    [[nodiscard]] running<std::string> start_asking(std::string line);
    std::string ask(std::string line, std::source_location where = std::source_location::current())
    {
        return start_asking(std::move(line)).get(io_, where);
    }

private:
    asio::io_context& io_;
    temporary_folder folder_;
    asio::local::stream_protocol::socket socket_;
    child_process process_;
};

} // namespace colock::testing
