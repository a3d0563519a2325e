// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::mongo::detail {

/// What a lock's document says of one who holds it, or did.
struct holder_view
{
    std::string_view token{};
    std::int64_t expires = 0;
    std::int64_t fence = 0;
    std::int64_t request = 0;
};

/// No greater fence is given. As a time it is the end of the year 9999: `p` is not earlier than the fence, and later
/// dates cannot be read everywhere. A fence near 2^63 would become a floating-point number with the next grant.
inline constexpr std::int64_t max_fence = 253'402'300'799'999;

/// A lock's document, as `findAndModify` answers with it or a listing brings it. A view.
class lock_view
{
public:
    /// The answer to `findAndModify`.
    [[nodiscard]] static lock_view of_answer(const document& reply);
    explicit lock_view(const bson_iter_t& fields);
    /// There is none.
    lock_view() = default;

    /// There is one.
    [[nodiscard]] bool exists() const noexcept { return exists_; }
    /// Without a token where nobody holds it.
    [[nodiscard]] const holder_view& exclusive() const noexcept { return exclusive_; }
    [[nodiscard]] const std::vector<holder_view>& shared() const noexcept { return shared_; }
    /// Of a claim; null where it is none of the holders, expired or not.
    [[nodiscard]] const holder_view* find(std::string_view token) const noexcept;
    [[nodiscard]] std::string_view writer() const noexcept { return writer_; }
    /// Another than that adapter waits.
    [[nodiscard]] bool others_wait(std::string_view than, std::int64_t now) const noexcept
    {
        return waited_for_until_ > now && waiter_ != than;
    }
    /// It has a field of a type that no lock's document has there.
    [[nodiscard]] bool is_foreign() const noexcept { return is_foreign_; }
    /// The last fence of the key leaves no greater one.
    [[nodiscard]] bool is_out_of_fences() const noexcept { return exclusive_.fence >= max_fence; }
    /// Of the exclusive holder, or the first of the shared ones; for messages.
    [[nodiscard]] std::string_view owner() const noexcept { return owner_; }

    /// When a claim of that kind may be granted without anybody's doing; 0: it is not seen what keeps it.
    [[nodiscard]] std::int64_t free_at(const claim& of, std::int64_t now) const noexcept;

private:
    void read(const bson_iter_t& fields);

    bool exists_ = false;
    bool is_foreign_ = false;
    holder_view exclusive_;
    std::vector<holder_view> shared_;
    std::string_view writer_;
    std::int64_t writer_until_ = 0;
    std::string_view owner_;
    std::string_view waiter_;
    std::int64_t waited_for_until_ = 0;
};

/// A whole document that has fields besides its key, and not the form of a lock's.
[[nodiscard]] bool is_foreign(const bson_iter_t& fields);

/// The live holders that a whole document tells of, or those that are expired.
enum class holders : unsigned char
{
    live,
    expired,
};
/// Without any for a document of another program.
[[nodiscard]] std::vector<lock_status> read_holders(const bson_iter_t& fields, holders which, std::int64_t now);

/// One of them, by what it can be released or extended with.
struct known_holder
{
    std::string token;
    lock_status status;
};
[[nodiscard]] std::vector<known_holder> read_known_holders(const bson_iter_t& fields, holders which, std::int64_t now);

/// The document that stands for an owner.
[[nodiscard]] document to_document(const owner_data& owner);

} // namespace colock::mongo::detail
