// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace colock::remote {

/// Finds out which address of a name takes connections: tries them in order, each a little after the one before unless
/// that has failed, as RFC 8305 has it. The driver tries them one after the other within one time limit, which an
/// address that swallows everything uses up.
///
/// Thread safety: none; all of it runs on `strand`. Its operations keep it alive.
class happy_eyeballs : public std::enable_shared_from_this<happy_eyeballs>
{
public:
    using endpoint = asio::ip::tcp::endpoint;
    /// The index of the winner; 0 if there is none.
    using handler = asio::any_completion_handler<void(std::size_t)>;

    explicit happy_eyeballs(asio::any_io_executor strand);

    /// Once. The connections that it makes are closed when it ends.
    void run(std::vector<endpoint> entrants, handler ended);
    /// Ends it, or the next run as soon as it begins, without a winner.
    void stop();

private:
    void start_next();
    void arrived(std::size_t which, const boost::system::error_code& failed);
    void end(std::size_t winner);

    const asio::any_io_executor strand_;
    lease_timer next_start_;
    std::vector<endpoint> entrants_;
    std::vector<asio::ip::tcp::socket> sockets_;
    std::size_t failed_ = 0;
    bool stopped_ = false;
    handler ended_;
};

} // namespace colock::remote
