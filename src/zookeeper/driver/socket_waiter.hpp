// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::zookeeper::detail {

/// The driver's socket, as Asio sees it: descriptors of our own for the same socket, because the driver closes its
/// own, and its next socket gets the same number.
///
/// Thread safety: none.
class socket_waiter
{
public:
    explicit socket_waiter(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    ~socket_waiter() { drop(); }
    socket_waiter(const socket_waiter&) = delete;
    socket_waiter& operator=(const socket_waiter&) = delete;

    /// True if that is another socket than before; it is not open if it could not be followed.
    /// \param stood the connection that it is of has stood since: then the number tells it
    bool follow(int drivers, bool stood);
    /// Waits end; the connection ends too, once the driver has closed its own.
    void drop() noexcept;
    [[nodiscard]] bool open() const noexcept { return own_.has_value(); }

    /// Counts sockets: a wait that began on an earlier one tells nothing of this one, though it may end after it.
    [[nodiscard]] unsigned number() const noexcept { return number_; }
    template <class Handler>
    void wait_readable(Handler handler)
    {
        own_->async_wait(asio::posix::descriptor_base::wait_read, std::move(handler));
    }
    /// On a descriptor that lasts as long as the wait: one that was waited for to be writable is reported as such at
    /// every later wait, too.
    template <class Handler>
    void wait_writable(Handler handler)
    {
        if (!writer_)
            writer_ = copy_of(own_->native_handle());
        (writer_ ? *writer_ : *own_).async_wait(asio::posix::descriptor_base::wait_write, std::move(handler));
    }
    void end_wait_writable() noexcept { writer_.reset(); }

    /// Ends the connection, whoever has a descriptor for it.
    void cut() noexcept;
    /// Keeps back what is written, until it is let go.
    void cork(bool keeps_back) noexcept;

    /// A wait to read does not end before so many bytes are there, or the other side has ended.
    void wake_at(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t wakes_at() const noexcept { return wakes_at_; }
    /// What is there to be read, and stays so; nothing: there is no more yet; empty: the other side has ended.
    [[nodiscard]] std::optional<std::span<std::byte>> peek(std::span<std::byte> into) noexcept;
    /// Reads it; the same otherwise.
    [[nodiscard]] std::optional<std::span<std::byte>> take(std::span<std::byte> into) noexcept;
    /// All of it, or false.
    [[nodiscard]] bool put(std::span<const std::byte> from) noexcept;

    /// In the child of a fork, where the socket is the parent's: neither the driver's descriptor nor ours leads
    /// anywhere any more.
    void disown() noexcept;

private:
    using descriptor = asio::posix::basic_stream_descriptor<asio::any_io_executor>;

    /// Nothing, if there can be none.
    [[nodiscard]] std::optional<descriptor> copy_of(int socket) const;
    [[nodiscard]] std::optional<std::span<std::byte>> receive(std::span<std::byte> into, int flags) noexcept;

    asio::any_io_executor executor_;
    std::optional<descriptor> own_;
    std::optional<descriptor> writer_;
    int drivers_ = -1;
    /// The kernel's name of the socket, which it does not use again.
    std::uint64_t cookie_ = 0;
    unsigned number_ = 0;
    std::size_t wakes_at_ = 1;
};

} // namespace colock::zookeeper::detail
