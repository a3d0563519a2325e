// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

inline const std::string greeting = "%2\r\n$2\r\nid\r\n:5\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";

/// Streams of valid replies, with most of the kinds that colock reads.
inline const std::vector<std::string> valid_streams{
    greeting + "$29\r\nrun_id:a\r\nredis_version:7.0.0\r\n:1\r\n+OK\r\n:1700000000000001\r\n",
    "+OK\r\n:1700000000000001\r\n_\r\n*3\r\n:0\r\n:59999\r\n$3\r\nabc\r\n",
    "-ERR unknown command\r\n!21\r\nSYNTAX invalid syntax\r\n$0\r\n\r\n",
    ">3\r\n$9\r\nsubscribe\r\n$1\r\nk\r\n:1\r\n+PONG\r\n>3\r\n$7\r\nmessage\r\n$1\r\nk\r\n$0\r\n\r\n",
    "*2\r\n$1\r\n0\r\n*2\r\n*2\r\n$1\r\na\r\n:7\r\n*0\r\n,1.5\r\n#t\r\n(12345678901234567890\r\n=7\r\ntxt:abc\r\n",
    "~2\r\n+a\r\n+b\r\n%0\r\n$11\r\n\r\n$\r\n;0\r\n|1\r\n+odd\r here \n\r\r\n",
};

/// Streams that no Redis server sends.
inline const std::vector<std::string> invalid_streams{
    "$\r\n",
    "=\r\n",
    "!\r\n",
    "*1\r\n$\r\n",
    ";0\r\n",
    ";5\r\nabcde\r\n",
    "$?\r\n;0\r\n",
    "$?\r\n;3\r\nabc\r\n",
    "$-2\r\nxx\r\n",
    "$18446744073709551615\r\nxxxx",
    "$18446744073709551614\r\nxxxx",
    "$9223372036854775807\r\nxxxx",
    "*18446744073709551615\r\n",
    "%9223372036854775808\r\n+a\r\n",
    "*\r\n",
    "%\r\n",
    "|1\r\n+a\r\n+b\r\n+OK\r\n",
    "\r\n",
    "\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "SSH-2.0-OpenSSH_9.2p1\r\n",
    std::string("\x16\x03\x01\x02"),
    std::string(4, '\0'),
    "$3\r\nabcde\r\n",
    "$3x\r\nabc\r\n",
    "*1 \r\n",
    "+" + std::string(70'000, 'a') + "\r\n",
};

/// Makes variants of valid streams. Some bytes are replaced, inserted, removed or repeated, or a part of another stream
/// is added.
class mutator
{
public:
    explicit mutator(std::uint32_t seed) : random_(seed) {}

    [[nodiscard]] std::size_t below(std::size_t limit)
    {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }
    [[nodiscard]] std::string next()
    {
        auto text = valid_streams[below(valid_streams.size())];
        for (auto changes = 1 + below(4); changes > 0 && !text.empty(); --changes)
            change(text);
        return text;
    }

private:
    void change(std::string& text)
    {
        // Bytes that have a meaning in frames, and similar ones.
        constexpr std::string_view frames = "$=!*%~>|;+-:_,#(?\r\n0123456789\0\xff"
                                            "x";
        const auto at = below(text.size());
        switch (below(6)) {
        case 0:
            text[at] = frames[below(frames.size())];
            return;
        case 1:
            text.insert(at, 1, frames[below(frames.size())]);
            return;
        case 2:
            text.erase(at, 1 + below(8));
            return;
        case 3:
            text.insert(at, text, below(text.size()), 1 + below(16));
            return;
        case 4: {
            const auto& odd = invalid_streams[below(invalid_streams.size() - 1)];
            text.insert(at, odd);
            return;
        }
        default: {
            const auto& other = valid_streams[below(valid_streams.size())];
            text.replace(at, std::string::npos, other, below(other.size()));
        }
        }
    }

    std::mt19937 random_;
};

} // namespace colock::testing
