// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/session_closer.hpp"

#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace colock::inline v0::zookeeper::detail {

namespace {

using boost::endian::native_to_big;

constexpr std::int32_t close_session = -11;
/// The xid of the closing request. The driver's own xids start with the Unix time in seconds and count up.
constexpr std::int32_t close_number = 0x7ffffffe;

template <class Number>
std::span<std::byte> put_number(std::span<std::byte> into, Number number)
{
    const auto big = native_to_big(number);
    std::memcpy(into.data(), &big, sizeof big);
    return into.subspan(sizeof big);
}

/// The request that closes the session, as the driver would write it. The driver's own function would block until the
/// reply arrives.
std::array<std::byte, 12> closing_request()
{
    std::array<std::byte, 12> bytes{};
    auto rest = put_number(std::span(bytes), std::int32_t{8});
    rest = put_number(rest, close_number);
    put_number(rest, close_session);
    return bytes;
}

/// Whether the stream ends with a successful reply to the closing request. The reply contains the number of a
/// transaction between the xid and the error code.
bool is_closing_answer(std::span<const std::byte, 20> tail)
{
    std::array<std::byte, 8> head{};
    put_number(put_number(std::span(head), std::int32_t{16}), close_number);
    constexpr std::array<std::byte, 4> success{};
    return std::ranges::equal(tail.first<8>(), head) && std::ranges::equal(tail.last<4>(), success);
}

} // namespace

/// Data that the driver has not written yet is sent first, because it may be the rest of a partially written request.
session_closer::progress session_closer::flush(zk_client& driver, socket_waiter& socket)
{
    if (driver.process(false, true) == zk_client::progress::failed)
        return progress::failed;
    const auto interest = driver.current_interest();
    if (interest.failed || interest.descriptor == -1 || driver.current_phase() != zk_client::phase::connected)
        return progress::failed;
    if (interest.wants_write)
        return progress::wants_write;
    return socket.put(closing_request()) ? read_rest(socket) : progress::failed;
}

session_closer::progress session_closer::read_rest(socket_waiter& socket)
{
    std::array<std::byte, 4096> buffer;
    for (;;) {
        const auto data = socket.take(buffer);
        if (!data)
            return progress::wants_read;
        if (data->empty())
            return is_closing_answer(tail_) ? progress::confirmed : progress::failed;
        const auto new_tail = data->last(std::min(data->size(), tail_.size()));
        std::ranges::rotate(tail_, tail_.begin() + static_cast<std::ptrdiff_t>(new_tail.size()));
        std::ranges::copy(new_tail, tail_.end() - static_cast<std::ptrdiff_t>(new_tail.size()));
    }
}

} // namespace colock::inline v0::zookeeper::detail
