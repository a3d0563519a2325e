// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/connection.hpp"

#include "mongo/driver/document.hpp"
#include "mongo/driver/driver.hpp"
#include "mongo/driver/hello.hpp"

#include <boost/asio/error.hpp>
#include <boost/assert.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

connection::connection(const asio::any_io_executor& strand, destination to, std::weak_ptr<connection_owner> owner)
    : strand_(strand), to_(std::move(to)), owner_(std::move(owner)), fiber_([this] { run_fiber(); }), timer_(strand)
{
}

connection::~connection() = default;

std::shared_ptr<connection> connection::make(
    const asio::any_io_executor& strand, destination to, std::weak_ptr<connection_owner> owner)
{
    start_driver();
    auto result = std::make_shared<connection>(strand, std::move(to), std::move(owner));
    join_context(strand, result);
    result->self_ = result;
    return result;
}

void connection::run(std::shared_ptr<task> next, lease_clock::time_point deadline)
{
    BOOST_ASSERT(is_free());
    task_ = std::move(next);
    deadline_ = deadline;
    resume_fiber();
}

void connection::close()
{
    closing_ = true;
    if (!fiber_.running() && !fiber_.ended())
        resume_fiber();
}

/// Connects, and compares the identity of the server.
bool connection::is_expected_server(mongoc_client_t& driver)
{
    constexpr bool for_writes = false;
    const std::unique_ptr<mongoc_server_description_t, decltype(&mongoc_server_description_destroy)> server(
        mongoc_client_select_server(&driver, for_writes, nullptr, nullptr), &mongoc_server_description_destroy);
    // The task reports why there is no connection.
    if (!server || std::string_view(mongoc_server_description_type(server.get())) == "Unknown")
        return true;
    document reply;
    bson_copy_to(mongoc_server_description_hello_response(server.get()), reply.overwrite());
    return hello(reply).identity == to_.identity;
}

void connection::perform_task(mongoc_client_t& driver) noexcept
{
    try {
        if (to_.identity && !std::exchange(is_identified_, true) && !is_expected_server(driver)) {
            task_->fail(make_not_primary("another server answers at this address"));
            return;
        }
    } catch (const std::exception&) {
        // Out of memory. The next connection compares the identity.
        task_->fail({.ends_connection = true});
        return;
    }
    task_->perform(driver);
}

/// Body of the fiber.
void connection::run_fiber() noexcept
{
    auto* const driver = mongoc_client_new_from_uri(driver_uri(to_).get());
    mongoc_client_set_stream_initiator(driver, &connection::initiate, this);
    mongoc_client_set_error_api(driver, MONGOC_ERROR_API_VERSION_2);
    while (!closing_) {
        if (task_ && !is_performed_) {
            requests_before_ = request_count();
            perform_task(*driver);
            is_performed_ = true;
        }
        fiber_.suspend();
    }
    // Without the reset, the driver would select a server to tell it about the end of its sessions.
    mongoc_client_reset(driver);
    mongoc_client_destroy(driver);
}

void connection::resume_fiber()
{
    const auto kept = shared_from_this();
    fiber_.resume();
    if (std::exchange(is_performed_, false))
        end_task();
    if (fiber_.ended() && self_) {
        timer_.reset();
        transport_.reset();
        self_.reset();
    }
}

void connection::end_task()
{
    const auto task = std::move(task_);
    task_ = nullptr;
    if (task->ends_connection()) {
        task->set_cause(cause(), request_count() > requests_before_);
        if (transport_)
            task->explain(transport_->explanation());
        closing_ = true;
    }
    const bool closed = closing_;
    task->on_end();
    if (auto next = task->take_next()) {
        if (!closing_) {
            run(std::move(next), deadline_);
            return;
        }
        next->on_end();
    }
    if (const auto owner = owner_.lock())
        owner->on_free(*this, closed);
    // Start to read, so that the end of the connection is noticed.
    if (is_free() && transport_)
        transport_->await_bytes();
    if (closing_ && !fiber_.ended())
        resume_fiber();
}

std::size_t connection::request_count() const noexcept
{
    return transport_ ? transport_->requests() : 0;
}

error_code connection::cause() const
{
    if (transport_ && transport_->failure())
        return transport_->failure();
    if (closing_)
        return asio::error::operation_aborted;
    if (transport_ && transport_->at_end())
        return asio::error::eof;
    return aborts() ? error_code(asio::error::timed_out) : error_code();
}

void connection::wake()
{
    if (fiber_.running())
        return;
    if (is_suspended_) {
        resume_fiber();
    } else if (const auto owner = is_free() && is_stale() ? owner_.lock() : nullptr) {
        const auto kept = shared_from_this();
        owner->on_stale(*this);
    }
}

bool connection::aborts() const noexcept
{
    return closing_ || lease_clock::now() >= deadline_;
}

void connection::suspend_until(lease_clock::time_point time)
{
    const auto end = std::min(time, deadline_);
    // A timer that ends earlier is sufficient, because the fiber may be resumed early.
    if (timer_ && end < timer_at_) {
        timer_at_ = end;
        timer_->expires_at(end);
        timer_->async_wait([weak = weak_from_this()](const error_code& error) {
            const auto self = weak.lock();
            if (error || !self)
                return;
            self->timer_at_ = lease_clock::time_point::max();
            self->wake();
        });
    }
    is_suspended_ = true;
    fiber_.suspend();
    is_suspended_ = false;
}

std::function<void()> connection::make_waker()
{
    return [weak = weak_from_this()] {
        if (const auto self = weak.lock())
            self->wake();
    };
}

mongoc_stream_t* connection::initiate(const mongoc_uri_t*, const mongoc_host_list_t*, void* self, bson_error_t* error)
{
    auto& host = *static_cast<connection*>(self);
    try {
        if (!host.closing_ && !host.transport_) {
            host.transport_ = std::make_shared<transport>(host.strand_, host.make_waker());
            host.transport_->open(host.to_);
            if (auto* const stream = make_stream(host, host.transport_))
                return stream;
        }
    } catch (...) {
        // Out of memory. No exception may pass through the driver's frames.
    }
    bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT, "no connection can be started");
    return nullptr;
}

void connection::drop() noexcept
{
    closing_ = true;
    timer_.reset();
    const auto kept = std::move(self_);
    while (!fiber_.ended())
        fiber_.resume();
    task_ = nullptr;
    transport_ = nullptr;
    strand_ = {};
}

} // namespace colock::inline v0::mongo::detail
