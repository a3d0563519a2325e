// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/closing.hpp"

#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace colock::zookeeper::detail {

namespace {

using boost::endian::native_to_big;

constexpr std::int32_t close_session = -11;
/// The driver's own begin with the seconds of the year 1970 and go up.
constexpr std::int32_t close_number = 0x7ffffffe;

template <class Number>
std::span<std::byte> put_number(std::span<std::byte> into, Number number)
{
    const auto big = native_to_big(number);
    std::memcpy(into.data(), &big, sizeof big);
    return into.subspan(sizeof big);
}

/// As the driver would write it; but it would then wait for the answer, and block.
std::array<std::byte, 12> closing_request()
{
    std::array<std::byte, 12> bytes{};
    auto rest = put_number(std::span(bytes), std::int32_t{8});
    rest = put_number(rest, close_number);
    put_number(rest, close_session);
    return bytes;
}

/// Its answer ends what the server sends. Between them is the number of a transaction.
bool is_closing_answer(std::span<const std::byte, 20> tail)
{
    std::array<std::byte, 8> head{};
    put_number(put_number(std::span(head), std::int32_t{16}), close_number);
    constexpr std::array<std::byte, 4> success{};
    return std::ranges::equal(tail.first<8>(), head) && std::ranges::equal(tail.last<4>(), success);
}

} // namespace

/// What the driver has not written yet, half of a request perhaps, goes first.
closing::progress closing::flush(zk_client& driver, socket_waiter& socket)
{
    if (driver.process(false, true) == zk_client::progress::failed)
        return progress::failed;
    const auto wanted = driver.wants();
    if (wanted.failed || wanted.descriptor == -1 || driver.now() != zk_client::phase::connected)
        return progress::failed;
    if (wanted.wants_write)
        return progress::writes;
    return socket.put(closing_request()) ? read_rest(socket) : progress::failed;
}

closing::progress closing::read_rest(socket_waiter& socket)
{
    std::array<std::byte, 4096> room;
    for (;;) {
        const auto got = socket.take(room);
        if (!got)
            return progress::reads;
        if (got->empty())
            return is_closing_answer(tail_) ? progress::proven : progress::failed;
        // The last bytes of what was there and what has come.
        const auto fresh = got->last(std::min(got->size(), tail_.size()));
        std::ranges::rotate(tail_, tail_.begin() + static_cast<std::ptrdiff_t>(fresh.size()));
        std::ranges::copy(fresh, tail_.end() - static_cast<std::ptrdiff_t>(fresh.size()));
    }
}

} // namespace colock::zookeeper::detail
