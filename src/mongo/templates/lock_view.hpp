// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "mongo/driver/server_clock.hpp"

#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// A current or former holder, as stored in the document of a lock.
struct holder_view
{
    std::string_view token{};
    std::int64_t expires = 0;
    std::int64_t fence = 0;
    std::int64_t request = 0;
};

/// The greatest fence. `p` is a time, and is not earlier than the fence. A fence near 2^63 would become a
/// floating-point number with the next grant.
inline constexpr std::int64_t max_fence = max_time;

/// View of a lock's document, as contained in the reply to `findAndModify` or in a listing. The reply must outlive the
/// view.
class lock_view
{
public:
    /// Reads the reply to `findAndModify`.
    [[nodiscard]] static lock_view of_answer(const document& reply);
    explicit lock_view(const bson_iter_t& fields);
    /// Constructs the view of a missing document.
    lock_view() = default;

    /// Returns whether the document exists.
    [[nodiscard]] bool exists() const noexcept { return exists_; }
    /// Returns the exclusive holder. Its token is empty if there is none.
    [[nodiscard]] const holder_view& exclusive() const noexcept { return exclusive_; }
    [[nodiscard]] const std::vector<holder_view>& shared() const noexcept { return shared_; }
    /// Returns the holder with this token, expired or not; null if there is none.
    [[nodiscard]] const holder_view* find(std::string_view token) const noexcept;
    [[nodiscard]] std::string_view writer() const noexcept { return writer_; }
    /// Returns whether an adapter other than `adapter_name` waits.
    [[nodiscard]] bool others_wait(std::string_view adapter_name, std::int64_t now) const noexcept
    {
        return wait_mark_until_ > now && waiter_ != adapter_name;
    }
    /// Returns whether a field has a type that it never has in a lock's document.
    [[nodiscard]] bool is_foreign() const noexcept { return is_foreign_; }
    /// Returns whether the last fence of the key is the greatest one.
    [[nodiscard]] bool is_out_of_fences() const noexcept { return exclusive_.fence >= max_fence; }
    /// Owner of the exclusive holder, for messages.
    [[nodiscard]] std::string_view owner() const noexcept { return owner_; }
    /// Host of this owner.
    [[nodiscard]] std::string_view host() const noexcept { return host_; }

    /// Returns the time at which `claim` may be granted without a release, because a holder or the mark of a waiting
    /// writer expires. 0: nothing in the document prevents the grant.
    [[nodiscard]] std::int64_t free_at(const claim& claim, std::int64_t now) const noexcept;

private:
    void read(const bson_iter_t& fields);

    bool exists_ = false;
    bool is_foreign_ = false;
    holder_view exclusive_;
    std::vector<holder_view> shared_;
    std::string_view writer_;
    std::int64_t writer_until_ = 0;
    std::string_view owner_;
    std::string_view host_;
    std::string_view waiter_;
    std::int64_t wait_mark_until_ = 0;
};

/// Returns whether a whole document has fields besides its key, but not the form of a lock.
[[nodiscard]] bool is_foreign(const bson_iter_t& fields);

/// Selects the live or the expired holders of a document.
enum class holders : unsigned char
{
    live,
    expired,
};
/// Reads a whole document. Returns no holders for a document of another program. A holder counts as expired only if it
/// had certainly expired when the server read the document.
[[nodiscard]] std::vector<lock_status> read_holders(
    const bson_iter_t& fields, holders selection, const server_time& now);

/// A holder with its token, by which its lock can be released or extended.
struct known_holder
{
    std::string token;
    lock_status status;
};
[[nodiscard]] std::vector<known_holder> read_known_holders(
    const bson_iter_t& fields, holders selection, const server_time& now);

/// Returns the document that represents an owner.
[[nodiscard]] document to_document(const owner_data& owner);

} // namespace colock::inline v0::mongo::detail
