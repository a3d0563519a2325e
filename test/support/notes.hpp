// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/observer.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

/// Observer that records all events.
class notes final : public observer
{
public:
    void ready(std::string_view) noexcept override { ++readies; }
    void unreachable(
        std::string_view, const error_code& why, std::string_view address, std::string_view detail) noexcept override
    {
        obstacle = why;
        obstacle_address = address;
        obstacle_detail = detail;
    }
    void suspended(std::string_view, const error_code& why) noexcept override
    {
        ++suspensions;
        loss = why;
    }
    void reconnected(std::string_view) noexcept override { ++reconnections; }
    void at_risk(std::string_view, const error_code&) noexcept override { ++risks; }
    void warning(std::string_view, std::string_view message) noexcept override { warnings.emplace_back(message); }

    [[nodiscard]] bool warned_of(std::string_view word) const
    {
        return std::ranges::any_of(warnings, [&](const auto& each) { return each.find(word) != std::string::npos; });
    }

    int readies = 0;
    /// Reason why the last connection could not be established.
    error_code obstacle;
    std::string obstacle_address;
    std::string obstacle_detail;
    int suspensions = 0;
    /// Reason of the last suspension.
    error_code loss;
    int reconnections = 0;
    int risks = 0;
    std::vector<std::string> warnings;
};

} // namespace colock::testing
