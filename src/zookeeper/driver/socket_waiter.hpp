// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::zookeeper::detail {

/// Waits for the driver's socket with Asio. Uses duplicates of the driver's descriptor, because the driver closes its
/// own one, and the driver's next socket gets the same number.
///
/// Thread safety: none.
class socket_waiter
{
public:
    explicit socket_waiter(asio::any_io_executor executor) : executor_(std::move(executor)) {}
    ~socket_waiter() { drop(); }
    socket_waiter(const socket_waiter&) = delete;
    socket_waiter& operator=(const socket_waiter&) = delete;

    /// Uses the driver's current socket from now on. The object is not open if the descriptor cannot be duplicated.
    /// \param driver_descriptor descriptor of the driver's socket
    /// \param was_connected whether the connection has existed since the last call; then the same number means the same
    /// socket
    /// \return true if this is another socket than at the last call
    bool follow(int driver_descriptor, bool was_connected);
    /// Ends all waits. The connection ends once the driver has closed its own descriptor.
    void drop() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return reader_.has_value(); }

    /// Counts sockets. A wait that began on an earlier socket may end later, and says nothing about the current one.
    [[nodiscard]] unsigned number() const noexcept { return number_; }
    template <class Handler>
    void wait_readable(Handler handler)
    {
        reader_->async_wait(asio::posix::descriptor_base::wait_read, std::move(handler));
    }
    /// Uses a descriptor that exists only during the wait. After one wait for writability, a descriptor is reported as
    /// writable during every later wait as well.
    template <class Handler>
    void wait_writable(Handler handler)
    {
        if (!writer_)
            writer_ = copy_of(reader_->native_handle());
        (writer_ ? *writer_ : *reader_).async_wait(asio::posix::descriptor_base::wait_write, std::move(handler));
    }
    void end_wait_writable() noexcept { writer_.reset(); }

    /// Shuts the connection down for all descriptors of the socket.
    void shut_down() noexcept;
    /// Holds back written data (TCP_CORK) until called with false.
    void cork(bool holds_back) noexcept;

    /// Sets how many bytes must be available before `wait_readable` completes. It also completes when the peer has
    /// closed the connection.
    void set_low_watermark(std::size_t bytes) noexcept;
    [[nodiscard]] std::size_t low_watermark() const noexcept { return low_watermark_; }
    /// Returns the available data without removing it. Returns nullopt if there is no data yet, and an empty span if
    /// the connection has ended.
    [[nodiscard]] std::optional<std::span<std::byte>> peek(std::span<std::byte> into) noexcept;
    /// Like `peek`, but removes the data.
    [[nodiscard]] std::optional<std::span<std::byte>> take(std::span<std::byte> into) noexcept;
    /// Returns whether all of the data was written.
    [[nodiscard]] bool put(std::span<const std::byte> from) noexcept;

    /// Ends all waits in a child process. The descriptors of the driver and of this object lead to /dev/null from now
    /// on, because the connection belongs to the parent.
    void detach() noexcept;

private:
    using descriptor = asio::posix::basic_stream_descriptor<asio::any_io_executor>;

    /// Returns nullopt if the descriptor cannot be duplicated.
    [[nodiscard]] std::optional<descriptor> copy_of(int socket) const;
    [[nodiscard]] std::optional<std::span<std::byte>> receive(std::span<std::byte> into, int flags) noexcept;

    asio::any_io_executor executor_;
    std::optional<descriptor> reader_;
    std::optional<descriptor> writer_;
    int driver_descriptor_ = -1;
    /// The kernel's identifier of the socket, which is not used again.
    std::uint64_t cookie_ = 0;
    unsigned number_ = 0;
    std::size_t low_watermark_ = 1;
};

} // namespace colock::inline v0::zookeeper::detail
