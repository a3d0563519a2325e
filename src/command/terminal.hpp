// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <string>

namespace command {

/// Returns whether a descriptor may be written to with colours: it is a terminal, and NO_COLOR is not set.
[[nodiscard]] bool use_colours(int descriptor);

/// Returns a duration for people in at most two units: "12 s", "3 min 20 s", "2 h 5 min", "4 d 3 h".
[[nodiscard]] std::string in_words(std::chrono::nanoseconds span);

/// One line on stderr that is written again in place. Removed by `clear` and by the destructor.
class progress_line
{
public:
    progress_line() = default;
    progress_line(const progress_line&) = delete;
    progress_line& operator=(const progress_line&) = delete;
    ~progress_line() { clear(); }

    void show(const std::string& text);
    void clear();

private:
    bool is_shown_ = false;
};

} // namespace command
