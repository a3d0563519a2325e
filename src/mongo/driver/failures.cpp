// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/failures.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace colock::inline v0::mongo::detail {

namespace {

template <std::size_t Count>
bool is_one_of(const std::array<int, Count>& codes, std::int32_t code) noexcept
{
    return std::ranges::find(codes, code) != codes.end();
}

/// DuplicateKey, WriteConflict, LockTimeout, LockBusy, TooManyLocks.
constexpr std::array conflicts{11000, 112, 24, 46, 208};
/// NotWritablePrimary, NotPrimaryNoSecondaryOk, LegacyNotPrimary: the command was not started.
constexpr std::array not_primary{10107, 13435, 10058};
/// The server, or the network behind it, was interrupted: HostUnreachable, HostNotFound, NetworkTimeout,
/// ShutdownInProgress, MaxTimeMSExpired, WriteConcernFailed, FailedToSatisfyReadPreference, PrimarySteppedDown,
/// NetworkInterfaceExceededTimeLimit, KeyNotFound (of the key that signs the time in an answer), ExceededTimeLimit,
/// SocketException, NotPrimaryOrSecondary.
constexpr std::array broken_off{6, 7, 89, 91, 50, 64, 133, 189, 202, 211, 262, 9001, 13436};
/// The remaining codes of the server's category Interruption: CursorKilled, ClientDisconnect,
/// TransactionCoordinatorSteppingDown, TransactionCoordinatorReachedAbortDecision,
/// TransactionExceededLifetimeLimitSeconds, InterruptedDueToStorageChange, InterruptedDueToReshardingCriticalSection,
/// InterruptedDueToAddShard, InterruptedDueToOverload, InterruptedDueToTimeseriesUpgradeDowngrade,
/// TooManyOpenTransactions, InterruptedAtShutdown, Interrupted, InterruptedDueToReplStateChange, ClientMarkedKilled,
/// RetriableRemoteCommandFailure, InterruptedDueToFCVChange.
constexpr std::array interruptions{
    237, 279, 281, 282, 290, 355, 453, 471, 473, 485, 509, 11600, 11601, 11602, 46841, 91331, 10045600};
/// The server cannot do this for now, and an immediate retry would make it worse or meet the same state:
/// ReadConcernMajorityNotAvailableYet, QueryPlanKilled, TemporarilyUnavailable, UserWritesBlocked, ResourceExhausted,
/// AdmissionQueueOverflow, RateLimitExceeded, PooledConnectionAcquisitionRejected, IngressRequestRateLimitExceeded,
/// BackgroundOperationInProgressForNamespace, OutOfDiskSpace.
constexpr std::array not_for_now{134, 175, 365, 371, 402, 433, 449, 450, 462, 12587, 14031};
/// Unauthorized, AuthenticationFailed, and the codes that hosted services use for them.
constexpr std::array denials{13, 18, 8000, 33};

/// InternalError, UnknownError, OperationFailed. Servers report them for errors of any kind, at any time.
constexpr std::array generic{1, 8, 96};

constexpr std::int32_t duplicate_key = 11000;
/// TypeMismatch, ConversionFailure, and errors of the operators $add, $map, $size, $filter, $concatArrays, $in and
/// $mergeObjects about their operands.
constexpr std::array type_errors{14, 241, 16554, 16883, 17124, 28651, 28664, 40081, 40400};

/// DocumentValidationFailure, InvalidOptions, CommandNotSupportedOnView, DocTooLargeForCapped,
/// CannotGrowDocumentInCappedNamespace.
constexpr std::array unsuitable{121, 72, 166, 116, 10003};
constexpr std::int32_t failed_to_parse = 9;
/// FailedToParse, CommandNotFound: the server does not know the command, or a part of it.
constexpr std::array unknown_commands{failed_to_parse, 59};

/// Returns whether an update or delete failed, although the server reports success for the command as such.
bool has_write_error(const answer& result) noexcept
{
    bson_iter_t found;
    return lacks_confirmation(result) || bson_iter_init_find(&found, result.reply.get(), "writeErrors");
}

std::string name_of(const answer& result)
{
    auto name = result.code == 0 ? "no code" : "code " + std::to_string(result.code);
    bson_iter_t found;
    if (bson_iter_init_find(&found, result.reply.get(), "codeName") && BSON_ITER_HOLDS_UTF8(&found))
        (name += ", ") += bson_iter_utf8(&found, nullptr);
    return name;
}

/// Returns the name of the index in which a duplicate key was found, or of the index's first field. Empty for the index
/// of `_id`, and if the server does not report the index.
std::string_view other_index(const answer& result) noexcept
{
    constexpr std::string_view before = " index: ";
    const std::string_view text = result.text;
    std::string_view name;
    if (const auto at = text.find(before); at != std::string_view::npos) {
        name = text.substr(at + before.size());
        name = name.substr(0, name.find(" dup key"));
    }
    bson_iter_t pattern;
    bson_iter_t field;
    if (!bson_iter_init_find(&pattern, result.reply.get(), "keyPattern") || !BSON_ITER_HOLDS_DOCUMENT(&pattern) ||
        !bson_iter_recurse(&pattern, &field) || !bson_iter_next(&field))
        return name == "_id_" ? std::string_view() : name;
    const std::string_view first = bson_iter_key(&field);
    if (first == "_id" && !bson_iter_next(&field))
        return {};
    return name.empty() ? first : name;
}

/// Returns why a collection cannot hold locks, as shown by a refusal. Empty: the refusal has another cause.
std::string reason_in(const answer& result)
{
    const bool names_time_series =
        result.text.find("time-series") != std::string::npos || result.text.find("timeseries") != std::string::npos;
    switch (result.code) {
    case duplicate_key:
        return has_unique_index(other_index(result));
    case 121: // DocumentValidationFailure
        return std::string(has_validator);
    case 72:  // InvalidOptions
    case 166: // CommandNotSupportedOnView
        if (names_time_series)
            return std::string(is_time_series);
        return result.code == 166 ? std::string(is_view) : "";
    case 116:   // DocTooLargeForCapped
    case 10003: // CannotGrowDocumentInCappedNamespace
        return std::string(is_capped);
    default:
        return {};
    }
}

/// Returns whether the server reports the code before its first change.
bool precedes_changes(std::int32_t code, std::int32_t no_change_code) noexcept
{
    return code == no_change_code || is_one_of(denials, code) || is_one_of(type_errors, code) ||
           is_one_of(unsuitable, code) || is_one_of(unknown_commands, code);
}

failure_ptr unavailable(const answer& result)
{
    if (result.code == 0)
        return make_failure(errc::unavailable, "no connection could be made: " + result.text, result.cause);
    return make_failure(errc::unavailable, "the server cannot carry out the command now (" + name_of(result) + ')');
}

failure_ptr unknown_outcome(const answer& result)
{
    if (result.outcome == answer::kind::done || result.code == 64)
        return make_failure(errc::outcome_unknown, "a majority of the members has not confirmed the write in time");
    if (result.code == 0 && result.outcome != answer::kind::refused)
        return make_failure(errc::outcome_unknown, "the connection was lost before the server replied", result.cause);
    return make_failure(errc::outcome_unknown,
        "the server has failed, and does not report what it has carried out (" + description_of(result) + ')');
}

failure_ptr refusal(const answer& result, std::int32_t no_change_code)
{
    if (result.code == no_change_code || is_about_types(result))
        return foreign_document();
    if (const auto reason = reason_in(result); !reason.empty())
        return unsuitable_collection(reason);
    if (is_one_of(denials, result.code)) {
        return make_failure(errc::access_denied,
            "the server denies access to this user (" + name_of(result) +
                "); correct user and password, or grant find, insert, update and remove on the collection");
    }
    return make_failure(errc::misconfigured_backend,
        "the server refused the command (" + name_of(result) + "); is it MongoDB 5.0 or later?");
}

} // namespace

bool lacks_confirmation(const answer& result) noexcept
{
    bson_iter_t found;
    return bson_iter_init_find(&found, result.reply.get(), "writeConcernError");
}

verdict judge(const answer& result, std::int32_t no_change_code) noexcept
{
    if (result.outcome == answer::kind::done)
        return has_write_error(result) ? verdict::unknown : verdict::done;
    if (result.outcome == answer::kind::unsent || is_one_of(not_primary, result.code))
        return verdict::later;
    if (result.outcome == answer::kind::unknown || (result.is_of_batch && !is_one_of(denials, result.code)))
        return verdict::unknown;
    if (result.code == duplicate_key && !other_index(result).empty())
        return verdict::refused;
    if (is_one_of(conflicts, result.code))
        return verdict::conflict;
    return precedes_changes(result.code, no_change_code) ? verdict::refused : verdict::unknown;
}

bool is_denial(const answer& result) noexcept
{
    return result.outcome == answer::kind::refused && is_one_of(denials, result.code);
}

bool is_raced_insert(const answer& result) noexcept
{
    return result.outcome == answer::kind::refused && !result.is_of_batch && result.code == failed_to_parse;
}

bool is_interruption(const answer& result) noexcept
{
    return result.outcome == answer::kind::unsent || result.outcome == answer::kind::unknown ||
           is_one_of(not_primary, result.code) || is_one_of(broken_off, result.code) ||
           is_one_of(interruptions, result.code);
}

bool is_temporary(const answer& result) noexcept
{
    return is_interruption(result) || judge(result) == verdict::conflict || is_one_of(not_for_now, result.code);
}

bool is_unexplained(const answer& result, std::int32_t no_change_code) noexcept
{
    return result.outcome == answer::kind::refused && judge(result, no_change_code) == verdict::unknown &&
           !is_interruption(result);
}

bool needs_new_primary(const answer& result) noexcept
{
    return result.outcome == answer::kind::unsent ||
           (result.ends_connection && result.code != 0 && !is_one_of(denials, result.code));
}

bool has_other_meaning(std::int32_t code) noexcept
{
    return code == 0 || is_one_of(generic, code) || is_one_of(conflicts, code) || is_one_of(not_primary, code) ||
           is_one_of(broken_off, code) || is_one_of(interruptions, code) || is_one_of(not_for_now, code) ||
           is_one_of(denials, code) || is_one_of(type_errors, code) || is_one_of(unsuitable, code) ||
           is_one_of(unknown_commands, code);
}

failure_ptr failure_of(const answer& result, std::int32_t no_change_code, effect operation_effect)
{
    switch (judge(result, no_change_code)) {
    case verdict::done:
    case verdict::unknown:
        break;
    case verdict::conflict:
    case verdict::later:
        return unavailable(result);
    case verdict::refused:
        return refusal(result, no_change_code);
    }
    if (operation_effect == effect::writes)
        return unknown_outcome(result);
    const bool may_succeed_later = result.outcome != answer::kind::refused || result.code == 0 ||
                                   is_temporary(result) || is_one_of(generic, result.code);
    if (!may_succeed_later)
        return refusal(result, no_change_code);
    const auto failure = unknown_outcome(result);
    return make_failure(errc::unavailable, failure->detail, failure->cause);
}

std::string description_of(const answer& result)
{
    // A text of the server may repeat a whole document.
    constexpr std::size_t max_text = 200;
    auto text = name_of(result);
    if (!result.text.empty())
        (text += ": ") += result.text.substr(0, max_text);
    return text;
}

failure_ptr foreign_document()
{
    return make_failure(errc::misconfigured_backend,
        "the document of this key is another program's; give colock a collection of its own");
}

failure_ptr out_of_fences()
{
    return make_failure(errc::misconfigured_backend,
        "no greater fence can be given for this key: set the field f of its document to the server's time in "
        "milliseconds, and forget higher fences in every resource that compares them");
}

failure_ptr unsuitable_collection(std::string_view reason)
{
    return make_failure(errc::misconfigured_backend,
        "the collection " + std::string(reason) + "; remove the cause, or give colock a collection of its own");
}

std::string has_unique_index(std::string_view index)
{
    return "has the unique index " + std::string(index) + ", which refuses colock's documents";
}

bool is_about_types(const answer& result) noexcept
{
    return result.outcome == answer::kind::refused && is_one_of(type_errors, result.code);
}

} // namespace colock::inline v0::mongo::detail
