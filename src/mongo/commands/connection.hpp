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

namespace colock::mongo::detail {

/// Something to be done with the driver.
class task
{
public:
    virtual ~task() = default;
    /// On a lane's fiber: calls of the driver suspend it. Must not throw.
    virtual void perform(::_mongoc_client_t& driver) noexcept = 0;
    /// It is not performed: no connection could be authenticated.
    virtual void fail(answer why) noexcept = 0;
    /// It spoils, and that is what has become of the connection, as far as can be seen.
    /// \param was_sent some of it may have arrived at the server
    virtual void blame(const error_code& cause, bool was_sent) = 0;
    /// What the cause does not tell, to be said behind it.
    void explain(std::string more) { explanation_ = std::move(more); }
    [[nodiscard]] const std::string& explanation() const noexcept { return explanation_; }
    /// The driver's client is of no use for the next.
    [[nodiscard]] virtual bool spoils() const noexcept = 0;
    /// It has been performed, or ended early.
    virtual void performed() = 0;

    /// The lane performs `next` after this, before it takes anything else; or tells it that it was not begun, if the
    /// lane has ended. From inside `performed` only.
    void follow_with(std::shared_ptr<task> next) noexcept { next_ = std::move(next); }
    [[nodiscard]] std::shared_ptr<task> take_next() noexcept { return std::exchange(next_, nullptr); }

private:
    std::shared_ptr<task> next_;
    std::string explanation_;
};

class connection;

/// Who gives tasks to lanes.
class lane_owner
{
public:
    /// It has performed a task, and the task was told. Spoiled: it ends by itself.
    virtual void on_free(connection& which, bool spoiled) = 0;
    /// It was free, and its connection has ended.
    virtual void on_stale(connection& which) = 0;

protected:
    lane_owner() = default;
    ~lane_owner() = default;
};

/// One client of the driver, with a fiber that it runs on, and one server that it is connected to. Takes one task at a
/// time.
///
/// Thread safety: none; belongs to the strand. It keeps itself until it has been closed, or its context is gone.
class connection final : public std::enable_shared_from_this<connection>, public context_member, private fiber_host
{
public:
    [[nodiscard]] static std::shared_ptr<connection> make(
        const asio::any_io_executor& strand, destination to, std::weak_ptr<lane_owner> owner);
    connection(const asio::any_io_executor& strand, destination to, std::weak_ptr<lane_owner> owner);
    ~connection() override;

    [[nodiscard]] bool is_free() const noexcept { return !task_ && !closing_; }
    /// Free, but its connection has ended meanwhile: what it were asked would have an unknown outcome.
    [[nodiscard]] bool is_stale() { return link_ && link_->is_stale(); }
    [[nodiscard]] bool performs(const task& which) const noexcept { return task_.get() == &which; }
    /// When it is free. From the deadline on the driver's calls fail.
    void run(std::shared_ptr<task> asked, lease_clock::time_point deadline);
    /// It ends as soon as the driver has come back; what is under way fails.
    void close();
    /// The same, but nobody is told.
    void drop() noexcept;

    void context_shutdown() noexcept override { drop(); }

private:
    static ::_mongoc_stream_t* initiate(
        const ::_mongoc_uri_t* url, const ::_mongoc_host_list_t* where, void* self, ::_bson_error_t* error);

    void live() noexcept;
    void go_on();
    void end_task();
    [[nodiscard]] std::size_t requests() const noexcept;
    [[nodiscard]] error_code cause() const;
    void wake();

    [[nodiscard]] bool aborts() const noexcept override;
    void suspend_until(lease_clock::time_point time) override;
    [[nodiscard]] std::function<void()> waker();

    asio::any_io_executor strand_;
    const destination to_;
    const std::weak_ptr<lane_owner> owner_;
    fiber fiber_;
    std::optional<lease_timer> timer_;
    lease_clock::time_point timer_at_ = lease_clock::time_point::max();
    std::shared_ptr<task> task_;
    lease_clock::time_point deadline_ = lease_clock::time_point::max();
    /// The driver's one and only: it would make another by itself when it finds this one closed.
    std::shared_ptr<transport> link_;
    /// When the task was begun.
    std::size_t requests_before_ = 0;
    bool done_ = false;
    bool waits_ = false;
    bool closing_ = false;
    /// While the fiber has not ended.
    std::shared_ptr<connection> self_;
};

} // namespace colock::mongo::detail
