// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace asio = boost::asio;

struct networked_settings
{
    // Maximum duration of an operation, including the time to connect.
    std::chrono::milliseconds operation_timeout{5000};
    // Time after which an unused connection is closed. An open connection keeps `io_context::run()` from returning,
    // because the adapter always reads, in order to notice the loss of the connection.
    std::chrono::milliseconds idle_timeout{1000};
};

// Locks on a lock_server. All operations share one connection, which is established for the first request and after a
// loss for the next request. Requests are sent without waiting for earlier replies.
//
// The adapter knows which requests were handed to the socket. When the connection is lost, these have an unknown
// outcome, and all others are `unavailable`.
class networked_adapter : public colock::awaitable_adapter
{
public:
    networked_adapter(
        const asio::any_io_executor& executor, const asio::ip::tcp::endpoint& server, networked_settings settings = {})
        : awaitable_adapter(asio::make_strand(executor)), server_(server),
          address_(server.address().to_string() + ':' + std::to_string(server.port())), settings_(settings)
    {
    }

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "networked", .capabilities = {.fence = true}};
    }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        const auto reply = co_await execute("create", *claim, claim->ttl());
        if (reply.error)
            co_return colock::create_outcome::failed(reply.error);
        co_return reply.is_yes ? colock::create_outcome::granted(reply.number)
                               : colock::create_outcome::busy(std::chrono::nanoseconds(reply.number));
    }
    // Each release is settled. A request of the same claim was sent earlier on the same connection, whose requests the
    // server executes in order, or on a connection that is lost. The server has closed the lost connection before it
    // answered the `hello` of this one.
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        using enum colock::release_status;
        const auto reply = co_await execute("release", *claim);
        co_return colock::release_outcome{reply.error ? failed : reply.is_yes ? released : not_held, reply.error};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        using enum colock::extend_status;
        const auto reply = co_await execute("extend", *claim, ttl);
        co_return colock::extend_outcome{reply.error ? failed : reply.is_yes ? extended : not_held, reply.error};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        const auto reply = co_await execute("check", *claim);
        co_return colock::valid_outcome{reply.is_yes, reply.error};
    }

    // `cancel_close` is not overridden: a locker that is made during the close is a user, and users keep the
    // connection.
    asio::awaitable<void> do_close(colock::lease_clock::duration deadline) override
    {
        is_closing_ = true;
        const auto end = colock::saturating_add(colock::lease_clock::now(), deadline);
        while (connection_ && is_used() && colock::lease_clock::now() < end) {
            const auto timer = closes_.emplace(closes_.end(), executor(), end);
            co_await timer->async_wait(asio::as_tuple(asio::deferred));
            closes_.erase(timer);
        }
        if (connection_ && !has_users())
            close(asio::error::operation_aborted);
    }

    void context_shutdown() noexcept override
    {
        connection_ = nullptr;
        waiting_.clear();
        closes_.clear();
    }

private:
    static constexpr std::size_t max_reply = 64;

    struct reply
    {
        colock::failure_ptr error{};
        bool is_yes = false;
        std::uint64_t number = 0;
    };

    // A request until its operation ends. Each is in `waiting_`, or in `connection::sent`, or has an answer.
    struct request
    {
        void end(reply result)
        {
            answer = std::move(result);
            timer.cancel();
        }

        const std::string message;
        // Expires at the deadline of the request. Cancelled when there is an answer.
        colock::lease_timer timer;
        std::optional<reply> answer{};
    };
    using request_list = std::list<std::shared_ptr<request>>;

    // A connection, or an attempt to connect. Its coroutines check after each `co_await` whether it is still
    // `connection_`.
    struct connection
    {
        explicit connection(const asio::any_io_executor& executor) : socket(executor), idle(executor) {}

        asio::ip::tcp::socket socket;
        // Closes the connection while no request is in progress.
        colock::lease_timer idle;
        std::string input{};
        // The requests that were handed to the socket, in the order in which the server answers.
        request_list in_flight{};
        // Whether the server has answered the `hello`, so that requests may be sent.
        bool is_open = false;
        bool is_writing = false;
    };
    using connection_ptr = std::shared_ptr<connection>;

    asio::awaitable<reply> execute(std::string verb, const colock::claim& claim, std::chrono::milliseconds ttl = {})
    {
        verb += ' ' + claim.token().hex() + ' ' + std::to_string(ttl.count()) + ' ' + claim.key() + '\0';
        const auto deadline = colock::saturating_add(colock::lease_clock::now(), settings_.operation_timeout);
        const std::shared_ptr<request> entry(new request{std::move(verb), {executor(), deadline}});
        waiting_.push_back(entry);
        connect();
        connection_->idle.cancel();
        write();
        co_await entry->timer.async_wait(asio::as_tuple(asio::deferred));
        // Replies come in the order of the requests, so a connection with an overdue request is of no use. Neither is
        // an attempt to connect.
        if (!entry->answer)
            lose(asio::error::timed_out);
        co_return *entry->answer;
    }

    // Begins to connect, unless there is a connection or an attempt to connect. All waiting requests share it.
    void connect()
    {
        if (connection_)
            return;
        connection_ = std::make_shared<connection>(executor());
        contact().set_connecting(address_);
        spawn(run(connection_), connection_);
    }
    asio::awaitable<void> run(connection_ptr current)
    {
        auto& socket = current->socket;
        co_await socket.async_connect(server_, asio::deferred);
        socket.set_option(asio::ip::tcp::no_delay(true));
        co_await asio::async_write(socket, asio::buffer("hello " + client_ + '\0'), asio::deferred);
        co_await read(*current);
        if (current != connection_)
            co_return;
        current->is_open = true;
        // No request was sent before, so that the time to connect does not shorten a lease.
        contact().set_up(colock::lease_clock::now());
        write();
        for (;;) {
            auto answer = co_await read(*current);
            if (current != connection_)
                co_return;
            if (current->in_flight.empty())
                throw boost::system::system_error(make_error_code(boost::system::errc::bad_message));
            current->in_flight.front()->end(std::move(answer));
            current->in_flight.pop_front();
            if (!is_used())
                begin_idle();
        }
    }
    asio::awaitable<reply> read(connection& from)
    {
        const auto size = co_await asio::async_read_until(
            from.socket, asio::dynamic_buffer(from.input, max_reply), '\0', asio::deferred);
        std::istringstream fields(from.input.substr(0, size - 1));
        from.input.erase(0, size);
        std::string word;
        reply result;
        if (!(fields >> word >> result.number) || (word != "yes" && word != "no"))
            throw boost::system::system_error(make_error_code(boost::system::errc::bad_message));
        result.is_yes = word == "yes";
        co_return result;
    }

    // Begins to write the waiting requests, if the connection is open and nothing is being written.
    void write()
    {
        if (connection_->is_open && !std::exchange(connection_->is_writing, true))
            spawn(write_all(connection_), connection_);
    }
    asio::awaitable<void> write_all(connection_ptr current)
    {
        while (current == connection_ && !waiting_.empty()) {
            std::string batch;
            for (const auto& each : waiting_)
                batch += each->message;
            // From here on, the outcome of these requests is unknown until they are answered.
            current->in_flight.splice(current->in_flight.end(), waiting_);
            co_await asio::async_write(current->socket, asio::buffer(batch), asio::deferred);
        }
        current->is_writing = false;
    }

    // Starts a coroutine of a connection, which keeps the adapter alive. Its failure is the loss of the connection.
    void spawn(asio::awaitable<void> coroutine, connection_ptr current)
    {
        asio::co_spawn(executor(), std::move(coroutine),
            [this, self = shared_from_this(), current = std::move(current)](const std::exception_ptr& failure) {
                if (failure && current == connection_)
                    lose(code_of(failure));
            });
    }
    static boost::system::error_code code_of(const std::exception_ptr& failure)
    {
        try {
            std::rethrow_exception(failure);
        } catch (const boost::system::system_error& thrown) {
            return thrown.code();
        } catch (const std::exception&) {
            return asio::error::no_memory;
        }
    }

    bool is_used() const { return !waiting_.empty() || !connection_->in_flight.empty(); }
    void begin_idle()
    {
        for (auto& each : closes_)
            each.cancel();
        const bool is_kept = !is_closing_ || has_users();
        connection_->idle.expires_after(is_kept ? settings_.idle_timeout : std::chrono::milliseconds(0));
        connection_->idle.async_wait([this, self = shared_from_this(), current = connection_](const auto& error) {
            if (!error && current == connection_ && !is_used())
                close(asio::error::operation_aborted);
        });
    }

    // Ends a connection that is not needed, and the requests that still use it.
    void close(const boost::system::error_code& error)
    {
        end_connection(error);
        contact().set_idle();
    }
    // Ends a connection that has failed. The core may start operations within the last call.
    void lose(const boost::system::error_code& error) { contact().set_down(end_connection(error), address_); }
    // Ends the connection and all requests. Returns the failure of a request that was not sent.
    colock::failure_ptr end_connection(const boost::system::error_code& error)
    {
        const auto unsent = colock::make_failure(colock::errc::unavailable, "no connection to " + address_, error);
        const auto unanswered = colock::make_failure(colock::errc::outcome_unknown, "lost " + address_, error);
        const auto previous = std::exchange(connection_, nullptr);
        previous->socket.close();
        previous->idle.cancel();
        for (const auto& each : previous->in_flight)
            each->end({.error = unanswered});
        for (const auto& each : std::exchange(waiting_, {}))
            each->end({.error = unsent});
        for (auto& each : closes_)
            each.cancel();
        return unsent;
    }

    const asio::ip::tcp::endpoint server_;
    const std::string address_;
    const networked_settings settings_;
    // The name of this adapter for the server.
    const std::string client_ = colock::token::generate().hex();
    // The requests that were not sent. While there is a request, there is a connection or an attempt to connect.
    request_list waiting_;
    connection_ptr connection_;
    // Whether the last locker is gone, so that an unused connection is closed at once unless there are new lockers.
    bool is_closing_ = false;
    // One timer for each close in progress. Expires at its deadline. Cancelled when the connection may be unused.
    std::list<colock::lease_timer> closes_;
};
