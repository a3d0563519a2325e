// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/socket_waiter.hpp"

#include <boost/system/error_code.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace colock::inline v0::zookeeper::detail {

namespace {

std::uint64_t cookie_of(int socket) noexcept
{
    std::uint64_t cookie = 0;
    ::socklen_t size = sizeof cookie;
    ::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size);
    return cookie;
}

} // namespace

bool socket_waiter::follow(int driver_descriptor, bool was_connected)
{
    if (was_connected && reader_ && driver_descriptor == driver_descriptor_)
        return false;
    const auto cookie = cookie_of(driver_descriptor);
    if (reader_ && cookie == cookie_)
        return false;
    drop();
    reader_ = copy_of(driver_descriptor);
    low_watermark_ = 1;
    driver_descriptor_ = driver_descriptor;
    cookie_ = cookie;
    return true;
}

std::optional<socket_waiter::descriptor> socket_waiter::copy_of(int socket) const
{
    std::optional<descriptor> result(executor_);
    boost::system::error_code error;
    const int copy = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
    result->assign(copy, error);
    if (error) {
        ::close(copy);
        result.reset();
    }
    return result;
}

void socket_waiter::drop() noexcept
{
    driver_descriptor_ = -1;
    reader_.reset();
    writer_.reset();
    ++number_;
}

void socket_waiter::shut_down() noexcept
{
    if (reader_)
        ::shutdown(reader_->native_handle(), SHUT_RDWR);
}

void socket_waiter::cork(bool holds_back) noexcept
{
    const int value = holds_back ? 1 : 0;
    if (reader_)
        ::setsockopt(reader_->native_handle(), IPPROTO_TCP, TCP_CORK, &value, sizeof value);
}

void socket_waiter::set_low_watermark(std::size_t bytes) noexcept
{
    const auto value = static_cast<int>(bytes);
    if (reader_ && std::exchange(low_watermark_, bytes) != bytes)
        ::setsockopt(reader_->native_handle(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
}

std::optional<std::span<std::byte>> socket_waiter::peek(std::span<std::byte> into) noexcept
{
    return receive(into, MSG_PEEK);
}

std::optional<std::span<std::byte>> socket_waiter::take(std::span<std::byte> into) noexcept
{
    return receive(into, 0);
}

std::optional<std::span<std::byte>> socket_waiter::receive(std::span<std::byte> into, int flags) noexcept
{
    const auto size = reader_ ? ::recv(reader_->native_handle(), into.data(), into.size(), flags | MSG_DONTWAIT) : 0;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return std::nullopt;
    return into.first(size > 0 ? static_cast<std::size_t>(size) : 0);
}

bool socket_waiter::put(std::span<const std::byte> from) noexcept
{
    return reader_ && ::send(reader_->native_handle(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                          static_cast<::ssize_t>(from.size());
}

void socket_waiter::detach() noexcept
{
    if (!reader_)
        return;
    const int nowhere = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup3(nowhere, driver_descriptor_, O_CLOEXEC);
    // Both processes may share the epoll instance. Deregistering these descriptors would deregister those of the
    // parent, so they are redirected.
    ::dup3(nowhere, reader_->native_handle(), O_CLOEXEC);
    if (writer_)
        ::dup3(nowhere, writer_->native_handle(), O_CLOEXEC);
    ::close(nowhere);
    drop();
}

} // namespace colock::inline v0::zookeeper::detail
