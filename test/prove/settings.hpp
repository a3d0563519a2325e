// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

namespace prove {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct settings
{
    std::string backend = "redis";
    std::string folder;
    std::string sabotage;
    std::uint32_t seed = std::random_device{}();
    int seconds = 60;
    std::uint32_t processes = 4;
    std::uint32_t workers = 16;
    std::uint32_t keys = 24;
    /// Whether some locks have no ttl. Such a lock outlives its process, so the faults that lose its release are left
    /// out.
    bool lasting_locks = false;

    [[nodiscard]] std::string key(std::uint32_t number) const { return key_prefix() + std::to_string(number); }
    [[nodiscard]] std::string key_prefix() const { return "prove-" + std::to_string(seed) + '-'; }
};

/// The limit of the shared locks of the key `semaphore_key`.
inline constexpr std::uint32_t max_holders = 2;
/// The number of the key that is requested as a semaphore.
inline constexpr std::uint32_t semaphore_key = 2;
/// The maximum number of keys.
inline constexpr std::uint32_t max_keys = 100;
/// The longest ttl of a lock.
inline constexpr milliseconds max_ttl = 4500ms;
/// How long an operation of a locker waits for an answer.
inline constexpr milliseconds operation_timeout = 2s;

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

} // namespace prove
