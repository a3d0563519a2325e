// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// Checks the RESP3 framing of received bytes, in pieces of any size, and rejects input that the driver's parser cannot
/// handle safely:
/// - a bulk string without a length: the parser throws in a noexcept function, which ends the process;
/// - a part of a streamed string: the parser writes outside of its stack of sizes;
/// - a length near 2^64: the parser continues in the middle of another reply;
/// - an attribute: the parser takes it for a reply;
/// - a reply of millions of values, which takes a lot of memory.
///
/// No Redis server sends any of these to colock, so the peer is another program.
class framing
{
public:
    /// Returns false once the input is invalid. Then neither these bytes nor later ones may be parsed.
    [[nodiscard]] bool accept(std::string_view bytes) noexcept;

private:
    enum class state : unsigned char
    {
        type,
        /// Rest of a line that is a complete value.
        line,
        line_feed,
        /// Number of elements, or of payload bytes.
        count,
        count_line_feed,
        payload,
        payload_return,
        payload_line_feed,
        refused,
    };

    [[nodiscard]] state step(char next) noexcept;
    /// Counts the value that begins. Returns false if the reply has too many values.
    [[nodiscard]] bool count_value() noexcept;
    [[nodiscard]] state begin(char type) noexcept;
    [[nodiscard]] state count(char digit) noexcept;

    state state_ = state::type;
    bool is_bulk_ = false;
    bool has_pairs_ = false;
    /// Values of the current reply: the number that have not begun, and the number that have begun.
    std::size_t expected_ = 0;
    std::size_t values_ = 0;
    /// Number of digits of the count that have been read.
    unsigned digits_ = 0;
    /// Remaining bytes of the payload, or length of the line so far.
    std::size_t size_ = 0;
};

} // namespace colock::inline v0::redis::detail
