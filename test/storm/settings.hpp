// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/process.hpp"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

namespace storm {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct settings
{
    std::string url = colock::testing::from_environment("COLOCK_TEST_MONGODB", "");
    std::string fault_command;
    std::uint32_t seed = std::random_device{}();
    int seconds = 300;
    std::uint32_t processes = 4;
    std::uint32_t workers = 8;
    std::uint32_t keys = 3;
    bool early_release = false;

    [[nodiscard]] std::string key(std::uint32_t number) const
    {
        return "storm-" + std::to_string(seed) + '-' + std::to_string(number);
    }
    [[nodiscard]] std::string key_prefix() const { return "storm-" + std::to_string(seed) + '-'; }
};

class random_numbers
{
public:
    explicit random_numbers(std::uint32_t seed) : engine_(seed) {}

    [[nodiscard]] std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
    [[nodiscard]] bool once_in(std::uint32_t times) { return below(times) == 0; }
    [[nodiscard]] milliseconds time_below(milliseconds bound)
    {
        return milliseconds(below(static_cast<std::uint32_t>(bound.count())));
    }
    [[nodiscard]] std::uint32_t seed() { return static_cast<std::uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

} // namespace storm
