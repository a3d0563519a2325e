// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <string_view>

namespace colock::redis::detail {

/// Follows the frames of what a server sends, however it is cut, and tells what must not reach the driver's parser.
///
/// At a bulk string without a length that parser throws where nothing may be thrown, which ends the process; at a part
/// of a streamed string it writes beside its stack of sizes; after a length near 2^64 it goes on in the midst of
/// another reply; and it takes an attribute for a reply of its own. A reply of millions of values takes more memory
/// than anybody asked for. No Redis server sends us any of them: who does is something else.
class framing
{
public:
    /// False once anything is out of order: then nothing of these bytes, nor of later ones, may be parsed.
    [[nodiscard]] bool accept(std::string_view bytes) noexcept;

private:
    enum class place : unsigned char
    {
        type,
        /// The rest of a line that is a value by itself.
        line,
        line_feed,
        /// Of elements, or of the bytes that follow.
        count,
        count_line_feed,
        payload,
        payload_return,
        payload_line_feed,
        refused,
    };

    [[nodiscard]] place step(char next) noexcept;
    /// Another value begins; false if it is one too many.
    [[nodiscard]] bool count_value() noexcept;
    [[nodiscard]] place begin(char type) noexcept;
    [[nodiscard]] place count(char digit) noexcept;

    place now_ = place::type;
    bool bulk_ = false;
    bool pairs_ = false;
    /// Values of the reply that is read now: still to come, and begun.
    std::size_t expected_ = 0;
    std::size_t values_ = 0;
    /// Of the count so far.
    unsigned digits_ = 0;
    /// What is left of the payload, or how long the line is.
    std::size_t size_ = 0;
};

} // namespace colock::redis::detail
