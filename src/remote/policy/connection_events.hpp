// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::remote {

/// What is told of a backend's connections, each change once, whether it has one or several.
///
/// Thread safety: none.
class connection_events
{
public:
    enum class item : unsigned char
    {
        none,
        /// The first of the connections is being made, or the first since all were closed.
        connecting,
        /// It exists, or nobody wants it any more. Observers are not told, because they have heard of no loss.
        connecting_ended,
        ready,
        suspended,
        reconnected,
        unreachable,
    };

    /// One is being made.
    [[nodiscard]] item began() const noexcept;
    /// One stands.
    [[nodiscard]] item opened() noexcept;
    /// One could not be made. Whoever hears of this hears of the end of it.
    [[nodiscard]] item failed() noexcept;
    /// One is no longer being made, because nobody wants it.
    [[nodiscard]] item gave_up() const noexcept;
    /// One that stood has ended; news if it was the last.
    [[nodiscard]] item lost() noexcept;
    /// The same, and we have ended it: no news.
    void closed() noexcept { --open_; }
    /// In the child of a fork.
    void forked() noexcept { *this = {}; }

private:
    unsigned open_ = 0;
    bool was_ready_ = false;
    bool is_lost_ = false;
};

} // namespace colock::remote
