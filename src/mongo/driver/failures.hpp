// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/command.hpp"

#include <colock/spi/adapter.hpp>

#include <string>
#include <string_view>

namespace colock::mongo::detail {

/// What an answer means for whoever has asked.
enum class verdict : unsigned char
{
    done,
    /// Another has written the same document at that moment: nothing has happened, it is worth asking again at once.
    conflict,
    /// Nothing has happened; another server, or the same a little later, may do it.
    later,
    /// It may have been carried out.
    unknown,
    refused,
};
[[nodiscard]] verdict judge(const answer& got) noexcept;

/// It was done, but no majority has confirmed it.
[[nodiscard]] bool lacks_confirmation(const answer& got) noexcept;

/// The server refuses the user, or the user has no right for the command: a server checks that before anything else.
[[nodiscard]] bool is_denial(const answer& got) noexcept;

/// The server refuses the command only for now: the same command may succeed a little later.
[[nodiscard]] bool is_temporary(const answer& got) noexcept;

/// Where commands go has to be found anew.
[[nodiscard]] bool is_leaving(const answer& got) noexcept;

/// For what is not done. The server's own text stays out of it: it may repeat what it was asked.
/// \param no_change_code with which that server refuses what may change nothing
[[nodiscard]] failure_ptr failure_of(const answer& got, std::int32_t no_change_code = changes_nothing);
/// A server says something else with that code, so it cannot be the one for what may change nothing.
[[nodiscard]] bool has_other_meaning(std::int32_t code) noexcept;

/// The document of a key belongs to another program.
[[nodiscard]] failure_ptr foreign_document();

/// The document of a key has a fence above which there is none.
[[nodiscard]] failure_ptr out_of_fences();

/// The collection cannot hold locks.
/// \param why what the collection is or has: completes "the collection ..."
[[nodiscard]] failure_ptr unsuitable_collection(std::string_view why);

// Reasons for that, as a listing of the collection or a refusal shows them.
inline constexpr std::string_view is_view = "is a view";
inline constexpr std::string_view is_time_series = "is a time series";
inline constexpr std::string_view is_capped =
    "is capped, so that the server deletes its oldest documents, held locks too";
inline constexpr std::string_view has_validator = "has a validator that refuses colock's documents";
inline constexpr std::string_view has_collation = "has a collation, so that it takes different keys for equal";
/// \param index its name
[[nodiscard]] std::string has_unique_index(std::string_view index);

/// The server refuses to work on the fields of a document because their types are not those that colock writes.
[[nodiscard]] bool is_about_types(const answer& got) noexcept;

} // namespace colock::mongo::detail
