// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/answer.hpp"
#include "mongo/driver/destination.hpp"
#include "mongo/driver/fiber.hpp"
#include "mongo/driver/stream.hpp"

#include <colock/clock.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

struct _bson_error_t;
struct _mongoc_client_t;
struct _mongoc_host_list_t;
struct _mongoc_stream_t;
struct _mongoc_uri_t;

namespace colock::inline v0::mongo::detail {

/// Work that a connection does with the driver.
class task
{
public:
    virtual ~task() = default;
    /// Called on the connection's fiber, which is suspended by calls of the driver. Must not throw.
    virtual void perform(::_mongoc_client_t& driver) noexcept = 0;
    /// Called instead of `perform` if no connection could be authenticated.
    virtual void fail(answer result) noexcept = 0;
    /// Called for a task after which the connection is unusable, with the cause of the connection's failure, as far as
    /// it is known.
    /// \param was_sent whether bytes of the task may have reached the server
    virtual void set_cause(const error_code& cause, bool was_sent) = 0;
    /// Sets a text to append to the message of the cause.
    void explain(std::string more) { explanation_ = std::move(more); }
    [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }
    /// Returns whether the driver's client cannot be used for another task.
    [[nodiscard]] virtual bool ends_connection() const noexcept = 0;
    /// Called after the task was performed or has ended early.
    virtual void on_end() = 0;

    /// Makes the connection perform `next` directly after this task. If the connection has ended, `next` ends as not
    /// sent. May only be called from inside of `on_end`.
    void follow_with(std::shared_ptr<task> next) noexcept { next_ = std::move(next); }
    [[nodiscard]] std::shared_ptr<task> take_next() noexcept { return std::exchange(next_, nullptr); }

private:
    std::shared_ptr<task> next_;
    std::string explanation_;
};

class connection;

/// Interface of the object that gives tasks to connections.
class connection_owner
{
public:
    /// The connection has performed a task, and the task was notified. An unusable connection closes itself.
    virtual void on_free(connection& which, bool closed) = 0;
    /// The transport of a free connection has ended.
    virtual void on_stale(connection& which) = 0;

protected:
    connection_owner() = default;
    ~connection_owner() = default;
};

/// One client of the driver, its fiber, and its connection to one server. Performs one task at a time.
///
/// Thread safety: none; belongs to the strand. The object keeps itself alive until it was closed or its context is
/// gone.
class connection final : public std::enable_shared_from_this<connection>, public context_member, private fiber_host
{
public:
    [[nodiscard]] static std::shared_ptr<connection> make(
        const asio::any_io_executor& strand, destination to, std::weak_ptr<connection_owner> owner);
    connection(const asio::any_io_executor& strand, destination to, std::weak_ptr<connection_owner> owner);
    ~connection() override;

    [[nodiscard]] bool is_free() const noexcept { return !task_ && !closing_; }
    /// Returns whether the transport of this free connection has ended. A command on it would have an unknown outcome.
    [[nodiscard]] bool is_stale() { return transport_ && transport_->is_stale(); }
    [[nodiscard]] bool performs(const task& which) const noexcept { return task_.get() == &which; }
    /// Performs a task. The connection must be free. From the deadline on, the driver's calls fail.
    void run(std::shared_ptr<task> next, lease_clock::time_point deadline);
    /// Closes the connection as soon as the driver returns. The task in progress fails.
    void close();
    /// Closes the connection at once, without notifying the task or the owner.
    void drop() noexcept;

    void context_shutdown() noexcept override { drop(); }

private:
    static ::_mongoc_stream_t* initiate(
        const ::_mongoc_uri_t* url, const ::_mongoc_host_list_t* host, void* self, ::_bson_error_t* error);

    void run_fiber() noexcept;
    [[nodiscard]] bool is_expected_server(::_mongoc_client_t& driver);
    void perform_task(::_mongoc_client_t& driver) noexcept;
    void resume_fiber();
    void end_task();
    [[nodiscard]] std::size_t request_count() const noexcept;
    [[nodiscard]] error_code cause() const;
    void wake();

    [[nodiscard]] bool aborts() const noexcept override;
    void suspend_until(lease_clock::time_point time) override;
    [[nodiscard]] std::function<void()> make_waker();

    asio::any_io_executor strand_;
    const destination to_;
    const std::weak_ptr<connection_owner> owner_;
    fiber fiber_;
    std::optional<lease_timer> timer_;
    lease_clock::time_point timer_at_ = lease_clock::time_point::max();
    std::shared_ptr<task> task_;
    lease_clock::time_point deadline_ = lease_clock::time_point::max();
    /// The only transport of the driver's client. After it was closed, the driver may try to open another one, which
    /// `initiate` refuses.
    std::shared_ptr<transport> transport_;
    /// Value of `request_count()` when the task was started.
    std::size_t requests_before_ = 0;
    bool is_performed_ = false;
    /// Whether the identity of the server was compared.
    bool is_identified_ = false;
    bool is_suspended_ = false;
    bool closing_ = false;
    /// Keeps this object alive until the fiber has ended.
    std::shared_ptr<connection> self_;
};

} // namespace colock::inline v0::mongo::detail
