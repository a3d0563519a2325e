// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/status.hpp>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0 {

/// One key of an `acquire_all`.
struct group_member
{
    /// Key of the lock, 1 to 512 bytes without NUL.
    std::string key;
    /// Default: the mode of the acquire_options.
    std::optional<lock_mode> mode;

    /// Makes a member from a key. Implicit, so that a list may contain plain keys.
    template <std::convertible_to<std::string_view> Key>
    group_member(Key&& name, std::optional<lock_mode> its_mode = {}) : key(std::forward<Key>(name)), mode(its_mode)
    {
    }
};

/// The keys of an `acquire_all`: `{"a", {"b", lock_mode::shared}}`, or a range of keys.
class group_members
{
public:
    /// Makes the list. Implicit, so that `acquire_all` accepts a braced list or a vector.
    group_members(std::initializer_list<group_member> members) : members_(members) {}
    group_members(std::vector<group_member> members) : members_(std::move(members)) {}
    /// Copies the keys of an input range, such as a `std::set<std::string>` or a view. A string is not a range of keys.
    template <std::ranges::input_range Keys>
        requires std::convertible_to<std::ranges::range_reference_t<Keys>, std::string_view>
    group_members(Keys&& keys)
    {
        for (auto&& key : keys)
            members_.emplace_back(std::forward<decltype(key)>(key));
    }

    /// Returns the keys in the order in which they were listed.
    [[nodiscard]] std::vector<group_member>& all() noexcept { return members_; }
    [[nodiscard]] const std::vector<group_member>& all() const noexcept { return members_; }

private:
    std::vector<group_member> members_;
};

/// The key of a lock, as the parameter of a function: a string literal, a `std::string`, or whatever else converts to
/// `std::string_view`. The key is copied at the call, because a function that returns an awaitable begins later.
struct key_name
{
    /// The copy.
    std::string name;

    /// Copies or moves the key. Implicit, so that functions accept strings.
    template <std::convertible_to<std::string_view> Key>
    key_name(Key&& key) : name(std::forward<Key>(key))
    {
    }
    /// Does not compile: several keys in braces would otherwise be the iterators of one string.
    COLOCK_REFUSED("a single key has no braces, and several keys need another function: acquire_all or with_lock")
    key_name(std::initializer_list<group_member>);
};

} // namespace colock::inline v0
