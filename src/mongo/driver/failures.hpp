// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/command.hpp"

#include <colock/spi/adapter.hpp>

#include <string>
#include <string_view>

namespace colock::inline v0::mongo::detail {

/// Meaning of an answer for the operation that sent the command.
enum class verdict : unsigned char
{
    done,
    /// Another client wrote the same document at the same moment. Nothing was changed, and an immediate retry is
    /// useful.
    conflict,
    /// Nothing was changed. Another server, or the same server a little later, may carry out the command.
    later,
    /// The command may have been carried out.
    unknown,
    /// Nothing was changed: the server reports this error before its first change.
    refused,
};
/// Only codes of which it is known that they come before the first change mean that nothing was changed. After all
/// other codes, and after an error without a code, the command may have been carried out.
/// \param no_change_code code with which the server fails a statement that must change nothing
[[nodiscard]] verdict judge(const answer& result, std::int32_t no_change_code = changes_nothing) noexcept;

/// Effect of an operation.
enum class effect : unsigned char
{
    /// The operation has changed nothing that a caller relies on, so its failure is never `errc::outcome_unknown`.
    reads,
    writes,
};

/// Returns whether the command was carried out but not confirmed by a majority.
[[nodiscard]] bool lacks_confirmation(const answer& result) noexcept;

/// Returns whether the server refuses the user, or the user has no right for the command. A server checks this before
/// it changes anything.
[[nodiscard]] bool is_denial(const answer& result) noexcept;

/// Returns whether another client may have inserted the same document at the same moment: a server that has carried out
/// colock's updates before reports that it cannot parse one, as DocumentDB does for such an upsert. Nothing was
/// changed.
[[nodiscard]] bool is_raced_insert(const answer& result) noexcept;

/// Returns whether the failure does not concern the command: the connection was lost, or the server was interrupted or
/// is not the primary.
[[nodiscard]] bool is_interruption(const answer& result) noexcept;

/// Returns whether the same command may succeed a little later.
[[nodiscard]] bool is_temporary(const answer& result) noexcept;

/// Returns whether the server reports an error that leaves the outcome unknown, and is not an interruption.
/// \param no_change_code code with which the server fails a statement that must change nothing
[[nodiscard]] bool is_unexplained(const answer& result, std::int32_t no_change_code) noexcept;

/// Returns whether the server cannot be used any more, so that the primary has to be found again.
[[nodiscard]] bool needs_new_primary(const answer& result) noexcept;

/// Returns the failure for an answer that is not `done`. It contains the server's own text, which may repeat parts of
/// the command, only if the code does not tell the outcome.
/// \param no_change_code code with which the server fails a statement that must change nothing
/// \param operation_effect effect of the command, and of the commands before it that belong to the same operation
[[nodiscard]] failure_ptr failure_of(
    const answer& result, std::int32_t no_change_code = changes_nothing, effect operation_effect = effect::writes);

/// Returns the server's own description of an error: the code, its name, and the beginning of the text.
[[nodiscard]] std::string description_of(const answer& result);

/// Returns whether servers use the code for another error, so that it cannot be the code of a statement that must
/// change nothing.
[[nodiscard]] bool has_other_meaning(std::int32_t code) noexcept;

/// Returns the failure for a key whose document belongs to another program.
[[nodiscard]] failure_ptr foreign_document();

/// Returns the failure for a key whose document contains the greatest possible fence.
[[nodiscard]] failure_ptr out_of_fences();

/// Returns the failure for a collection that cannot hold locks.
/// \param reason what the collection is or has: completes "the collection ..."
[[nodiscard]] failure_ptr unsuitable_collection(std::string_view reason);

// Values of `reason`, as found in a listing of the collection or in a refusal.
inline constexpr std::string_view is_view = "is a view";
inline constexpr std::string_view is_time_series = "is a time series";
inline constexpr std::string_view is_capped =
    "is capped, so that the server deletes its oldest documents, held locks too";
inline constexpr std::string_view has_validator = "has a validator that refuses colock's documents";
inline constexpr std::string_view has_collation = "has a collation, so that it takes different keys for equal";
/// \param index name of the index
[[nodiscard]] std::string has_unique_index(std::string_view index);

/// Returns whether the server refuses to process the fields of a document, because their types are not those that
/// colock writes.
[[nodiscard]] bool is_about_types(const answer& result) noexcept;

} // namespace colock::inline v0::mongo::detail
