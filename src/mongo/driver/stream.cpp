// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/stream.hpp"

#include <boost/assert.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <mongoc/mongoc.h>
#include <poll.h>

namespace colock::inline v0::mongo::detail {

namespace {

using namespace std::chrono_literals;

/// Type of the stream, by which the driver distinguishes its own streams from those of other programs.
constexpr int stream_type = 0x636f;

struct stream final : mongoc_stream_t
{
    stream(fiber_host& fiber_owner, std::shared_ptr<transport> open_transport) noexcept
        : mongoc_stream_t{}, host(fiber_owner), socket(std::move(open_transport))
    {
    }

    fiber_host& host;
    const std::shared_ptr<transport> socket;
    bool has_timed_out = false;
    bool would_block = false;
};
static_assert(std::is_standard_layout_v<mongoc_stream_t>);

stream& to_stream(mongoc_stream_t* base) noexcept
{
    return *static_cast<stream*>(base);
}

/// This function is not inlined, because the fiber may have changed threads since the caller computed the address of
/// `errno`.
[[gnu::noinline]] ssize_t fail_with(int code) noexcept
{
    errno = code;
    return -1;
}

ssize_t fail(const stream& self) noexcept
{
    return fail_with(self.host.aborts() ? ECANCELED : ECONNRESET);
}

/// Fails because the timeout has expired. A timeout of zero means that the driver does not want to wait.
ssize_t fail_late(stream& self, std::int32_t timeout) noexcept
{
    if (timeout == 0) {
        self.would_block = true;
        return fail_with(EAGAIN);
    }
    self.has_timed_out = true;
    return fail_with(ETIMEDOUT);
}

lease_clock::time_point deadline_after(std::int32_t timeout) noexcept
{
    return timeout < 0 ? lease_clock::time_point::max()
                       : saturating_add(lease_clock::now(), std::chrono::milliseconds(timeout));
}

/// Returns true if the caller must check again, false if the time is over.
bool wait(const stream& self, std::int32_t timeout, lease_clock::time_point end)
{
    if (timeout == 0 || lease_clock::now() >= end)
        return false;
    self.host.suspend_until(end);
    return true;
}

int close(mongoc_stream_t* base)
{
    to_stream(base).socket->close();
    return 0;
}

void destroy(mongoc_stream_t* base)
{
    close(base);
    delete &to_stream(base);
}

int flush(mongoc_stream_t*)
{
    return 0;
}

int set_option(mongoc_stream_t*, int, int, void*, mongoc_socklen_t)
{
    return 0;
}

bool is_closed(mongoc_stream_t* base)
{
    const auto& socket = *to_stream(base).socket;
    return socket.failure() || (socket.at_end() && socket.readable() == 0) || to_stream(base).host.aborts();
}

bool timed_out(mongoc_stream_t* base)
{
    return to_stream(base).has_timed_out;
}

bool should_retry(mongoc_stream_t* base)
{
    return to_stream(base).would_block;
}

ssize_t write(mongoc_stream_t* base, mongoc_iovec_t* parts, std::size_t count, std::int32_t timeout)
{
    auto& self = to_stream(base);
    self.has_timed_out = self.would_block = false;
    const auto end = deadline_after(timeout);
    while (!self.socket->is_open() || !self.socket->is_flushed()) {
        if (self.host.aborts() || self.socket->failure() || self.socket->at_end())
            return fail(self);
        if (!wait(self, timeout, end))
            return fail_late(self, timeout);
    }
    if (self.host.aborts())
        return fail(self);
    std::vector<std::span<const std::byte>> all;
    std::size_t size = 0;
    for (const auto& each : std::span(parts, count)) {
        all.emplace_back(static_cast<const std::byte*>(static_cast<const void*>(each.iov_base)), each.iov_len);
        size += each.iov_len;
    }
    self.socket->write(all);
    return self.socket->failure() ? fail(self) : static_cast<ssize_t>(size);
}

ssize_t read(
    mongoc_stream_t* base, mongoc_iovec_t* parts, std::size_t count, std::size_t at_least, std::int32_t timeout)
{
    auto& self = to_stream(base);
    self.has_timed_out = self.would_block = false;
    const auto end = deadline_after(timeout);
    std::size_t read_size = 0;
    std::size_t in_part = 0;
    for (;;) {
        while (count > 0 && self.socket->readable() > 0) {
            const std::span whole(static_cast<std::byte*>(static_cast<void*>(parts->iov_base)), parts->iov_len);
            const auto copied = self.socket->read(whole.subspan(in_part));
            read_size += copied;
            in_part += copied;
            if (in_part == whole.size()) {
                ++parts;
                --count;
                in_part = 0;
            }
        }
        if (count == 0 || (read_size > 0 && read_size >= at_least))
            return static_cast<ssize_t>(read_size);
        if (self.host.aborts() || self.socket->failure())
            return fail(self);
        if (self.socket->at_end())
            return static_cast<ssize_t>(read_size);
        self.socket->await_bytes();
        if (!wait(self, timeout, end))
            return fail_late(self, timeout);
    }
}

int events_of(mongoc_stream_poll_t& entry)
{
    auto& socket = *to_stream(entry.stream).socket;
    if (socket.failure() || to_stream(entry.stream).host.aborts())
        return POLLERR;
    int found = 0;
    if ((entry.events & POLLIN) != 0) {
        if (socket.readable() > 0 || socket.at_end())
            found |= POLLIN;
        else
            socket.await_bytes();
    }
    if ((entry.events & POLLOUT) != 0 && socket.is_open() && socket.is_flushed())
        found |= POLLOUT;
    return found;
}

/// All polled streams belong to one host.
ssize_t poll_all(mongoc_stream_poll_t* entries, std::size_t count, std::int32_t timeout)
{
    if (count == 0)
        return 0;
    auto& host = to_stream(entries->stream).host;
    // The driver's topology scanner polls with a timeout of zero in a loop. Wait for a millisecond, so that it does not
    // spin.
    const auto end = deadline_after(timeout == 0 ? 1 : timeout);
    for (;;) {
        ssize_t ready = 0;
        for (auto& each : std::span(entries, count)) {
            each.revents = events_of(each);
            ready += each.revents != 0 ? 1 : 0;
        }
        if (ready > 0 || lease_clock::now() >= end)
            return ready;
        host.suspend_until(end);
    }
}

} // namespace

mongoc_stream_t* make_stream(fiber_host& host, std::shared_ptr<transport> transport) noexcept
{
    auto* const result = new (std::nothrow) stream(host, std::move(transport));
    if (!result)
        return nullptr;
    result->type = stream_type;
    result->destroy = destroy;
    result->failed = destroy;
    result->close = close;
    result->flush = flush;
    result->writev = write;
    result->readv = read;
    result->setsockopt = set_option;
    result->check_closed = is_closed;
    // There is no stream below ours: get_base_stream stays null.
    result->poll = poll_all;
    result->timed_out = timed_out;
    result->should_retry = should_retry;
    return result;
}

} // namespace colock::inline v0::mongo::detail
