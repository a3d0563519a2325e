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

namespace colock::mongo::detail {

namespace {

using namespace std::chrono_literals;

/// The driver tells its own streams from those of others by this number.
constexpr int type_of_ours = 0x636f;

struct stream final : mongoc_stream_t
{
    stream(fiber_host& by, std::shared_ptr<transport> over) noexcept
        : mongoc_stream_t{}, host(by), link(std::move(over))
    {
    }

    fiber_host& host;
    const std::shared_ptr<transport> link;
    bool was_late = false;
    bool would_block = false;
};
static_assert(std::is_standard_layout_v<mongoc_stream_t>);

stream& ours(mongoc_stream_t* given) noexcept
{
    return *static_cast<stream*>(given);
}

/// The fiber may have changed threads since a caller has looked up where its errno is.
[[gnu::noinline]] ssize_t fail_with(int code) noexcept
{
    errno = code;
    return -1;
}

ssize_t fail(const stream& of) noexcept
{
    return fail_with(of.host.aborts() ? ECANCELED : ECONNRESET);
}

/// Nothing yet, and no more time.
ssize_t late(stream& of, std::int32_t timeout) noexcept
{
    if (timeout == 0) {
        of.would_block = true;
        return fail_with(EAGAIN);
    }
    of.was_late = true;
    return fail_with(ETIMEDOUT);
}

lease_clock::time_point until(std::int32_t timeout) noexcept
{
    return timeout < 0 ? lease_clock::time_point::max()
                       : saturating_add(lease_clock::now(), std::chrono::milliseconds(timeout));
}

/// True: look again. False: the time is over.
bool wait(const stream& of, std::int32_t timeout, lease_clock::time_point end)
{
    if (timeout == 0 || lease_clock::now() >= end)
        return false;
    of.host.suspend_until(end);
    return true;
}

int close(mongoc_stream_t* given)
{
    ours(given).link->close();
    return 0;
}

void destroy(mongoc_stream_t* given)
{
    close(given);
    delete &ours(given);
}

int flush(mongoc_stream_t*)
{
    return 0;
}

int set_option(mongoc_stream_t*, int, int, void*, mongoc_socklen_t)
{
    return 0;
}

bool is_closed(mongoc_stream_t* given)
{
    const auto& link = *ours(given).link;
    return link.failure() || (link.at_end() && link.readable() == 0) || ours(given).host.aborts();
}

bool timed_out(mongoc_stream_t* given)
{
    return ours(given).was_late;
}

bool should_retry(mongoc_stream_t* given)
{
    return ours(given).would_block;
}

ssize_t write(mongoc_stream_t* given, mongoc_iovec_t* parts, std::size_t count, std::int32_t timeout)
{
    auto& self = ours(given);
    self.was_late = self.would_block = false;
    const auto end = until(timeout);
    while (!self.link->is_open() || !self.link->is_flushed()) {
        if (self.host.aborts() || self.link->failure() || self.link->at_end())
            return fail(self);
        if (!wait(self, timeout, end))
            return late(self, timeout);
    }
    if (self.host.aborts())
        return fail(self);
    std::vector<std::span<const std::byte>> all;
    std::size_t size = 0;
    for (const auto& each : std::span(parts, count)) {
        all.emplace_back(static_cast<const std::byte*>(static_cast<const void*>(each.iov_base)), each.iov_len);
        size += each.iov_len;
    }
    self.link->write(all);
    return self.link->failure() ? fail(self) : static_cast<ssize_t>(size);
}

ssize_t read(
    mongoc_stream_t* given, mongoc_iovec_t* parts, std::size_t count, std::size_t at_least, std::int32_t timeout)
{
    auto& self = ours(given);
    self.was_late = self.would_block = false;
    const auto end = until(timeout);
    std::size_t got = 0;
    std::size_t in_part = 0;
    for (;;) {
        while (count > 0 && self.link->readable() > 0) {
            const std::span whole(static_cast<std::byte*>(static_cast<void*>(parts->iov_base)), parts->iov_len);
            const auto copied = self.link->read(whole.subspan(in_part));
            got += copied;
            in_part += copied;
            if (in_part == whole.size()) {
                ++parts;
                --count;
                in_part = 0;
            }
        }
        if (count == 0 || (got > 0 && got >= at_least))
            return static_cast<ssize_t>(got);
        if (self.host.aborts() || self.link->failure())
            return fail(self);
        if (self.link->at_end())
            return static_cast<ssize_t>(got);
        self.link->await_bytes();
        if (!wait(self, timeout, end))
            return late(self, timeout);
    }
}

int events_of(mongoc_stream_poll_t& asked)
{
    auto& link = *ours(asked.stream).link;
    if (link.failure() || ours(asked.stream).host.aborts())
        return POLLERR;
    int found = 0;
    if ((asked.events & POLLIN) != 0) {
        if (link.readable() > 0 || link.at_end())
            found |= POLLIN;
        else
            link.await_bytes();
    }
    if ((asked.events & POLLOUT) != 0 && link.is_open() && link.is_flushed())
        found |= POLLOUT;
    return found;
}

/// All of them are streams of one host.
ssize_t poll_all(mongoc_stream_poll_t* asked, std::size_t count, std::int32_t timeout)
{
    if (count == 0)
        return 0;
    auto& host = ours(asked->stream).host;
    // The scanner of the driver asks over and over for what does not take any time.
    const auto end = until(timeout == 0 ? 1 : timeout);
    for (;;) {
        ssize_t ready = 0;
        for (auto& each : std::span(asked, count)) {
            each.revents = events_of(each);
            ready += each.revents != 0 ? 1 : 0;
        }
        if (ready > 0 || lease_clock::now() >= end)
            return ready;
        host.suspend_until(end);
    }
}

} // namespace

mongoc_stream_t* make_stream(fiber_host& by, std::shared_ptr<transport> over) noexcept
{
    auto* const made = new (std::nothrow) stream(by, std::move(over));
    if (!made)
        return nullptr;
    made->type = type_of_ours;
    made->destroy = destroy;
    made->failed = destroy;
    made->close = close;
    made->flush = flush;
    made->writev = write;
    made->readv = read;
    made->setsockopt = set_option;
    made->check_closed = is_closed;
    // There is no stream below ours: get_base_stream stays null.
    made->poll = poll_all;
    made->timed_out = timed_out;
    made->should_retry = should_retry;
    return made;
}

} // namespace colock::mongo::detail
