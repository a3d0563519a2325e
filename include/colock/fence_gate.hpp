// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace colock::inline v0 {

class lock;

/// Protects a resource of this process from writers whose lease has ended. Remembers the highest fencing token of each
/// key, and rejects lower tokens.
///
/// If a writer or its request is paused until the lease has ended, its token is lower than the token of the next
/// holder. (M. Kleppmann, "How to do distributed locking", 2016.)
///
/// Call the gate where the resource is, not where the lock is held. The check and the access to the resource must be
/// one atomic step: run both on the same strand, or under the mutex of the resource. Otherwise the next holder may
/// write between the check and a later write.
///
/// The gate loses its state when the process ends. For a resource that outlives the process, store the fence with the
/// data: docs/fencing.md shows how.
///
/// Use the gate for exclusive locks only. Holders of a shared lock have different fences at the same time, and only the
/// highest would be admitted.
///
/// Thread safety: safe.
class COLOCK_EXPORT fence_gate
{
public:
    /// Returns whether `fence` is admitted: no higher fence of this key has been admitted before. The same fence may be
    /// admitted any number of times.
    /// \throws validation_error `invalid_key` for an empty key, which is also the key of an empty lock;
    ///     `invalid_options` for a fence of 0, because the backend has no fencing tokens
    [[nodiscard]] bool admit(std::string_view key, std::uint64_t fence);
    /// Equivalent to `admit(holder.key(), holder.fence())`. Does not check whether the lock is held.
    [[nodiscard]] bool admit(const lock& holder);

    /// Returns the highest admitted fence of the key, or 0 if none has been admitted.
    [[nodiscard]] std::uint64_t highest(std::string_view key) const;
    /// Removes the key, so that any fence is admitted again. Call it only when the resource no longer exists.
    void forget(std::string_view key);
    /// Returns the number of keys that are stored. Each uses about 100 bytes until `forget` is called.
    [[nodiscard]] std::size_t size() const;

private:
    struct text_hash : std::hash<std::string_view>
    {
        using is_transparent = void;
    };

    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::uint64_t, text_hash, std::equal_to<>> highest_;
};

} // namespace colock::inline v0
