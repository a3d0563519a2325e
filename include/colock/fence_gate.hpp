// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace colock {

class lock;

/// Guards a resource inside this process: remembers the highest fencing token of each key, and refuses lower ones. A
/// writer whose lease has ended, and that was paused or whose request was, comes with a lower one than the next
/// holder's. (M. Kleppmann, "How to do distributed locking", 2016.)
///
/// To be asked where the resource is, not where the lock is held, and in one step with what it guards: on the same
/// strand, or under the mutex of the resource. Between an answer and a write that comes later, the next holder may have
/// written. It forgets with its process; what outlives that keeps the fence beside the data: docs/fencing.md shows how.
///
/// For exclusive locks. Holders of a shared lock have different fences at the same time, of which only the highest
/// would be let in.
///
/// Thread safety: safe.
class fence_gate
{
public:
    /// Whether no higher fence was let in for this key. A fence may come as often as its holder writes.
    /// \throws validation_error `invalid_key` for an empty key, which is that of an empty lock, too; `invalid_options`
    /// for a fence of 0: the backend does not number its grants
    [[nodiscard]] bool admit(std::string_view key, std::uint64_t fence);
    /// The same of a lock of this process. Whether it is held is not asked.
    [[nodiscard]] bool admit(const lock& by);

    /// 0: none was let in.
    [[nodiscard]] std::uint64_t highest(std::string_view key) const;
    /// For a resource that is gone for good: lower fences are let in again.
    void forget(std::string_view key);
    /// How many keys are remembered: some 100 bytes each, until they are forgotten.
    [[nodiscard]] std::size_t size() const;

private:
    struct text_hash : std::hash<std::string_view>
    {
        using is_transparent = void;
    };

    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::uint64_t, text_hash, std::equal_to<>> highest_;
};

} // namespace colock
