// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "mongo/driver/server_clock.hpp"
#include "mongo/settings.hpp"

#include <colock/status.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::mongo::detail {

/// Position in the order of keys at which a page starts. Keys that are text come first, then binary keys. A server
/// compares a key only with keys of the same type, so that colock's documents that belong to no key never match.
class page_start
{
public:
    /// \param cursor a result of `cursor`; empty: the first page
    /// \return nullopt if the cursor is not valid
    [[nodiscard]] static std::optional<page_start> from(std::string_view cursor);

    [[nodiscard]] std::string cursor() const;
    void move_after(std::string key) { last_ = std::move(key); }
    /// Moves to the binary keys. Returns false if that was done before, so that nothing more follows.
    [[nodiscard]] bool skip_to_binary_keys() noexcept;

    /// Appends the condition on `_id`: only keys after the start of the page.
    void append_to(bson_t& query) const;
    [[nodiscard]] bool is_in_text_keys() const noexcept { return is_text_; }

private:
    bool is_text_ = true;
    std::string last_;
};

[[nodiscard]] document key_query(std::string_view key);
/// Maximum number of documents in one page of a listing, or in one step of a purge. One handler reports all holders of
/// them.
inline constexpr std::int64_t page_size = 256;

[[nodiscard]] document keys_query(std::span<const std::string_view> keys);
/// Returns the query for live holders. The server evaluates only a part of the filter.
/// \param now the server's time
[[nodiscard]] document list_query(const filter& filter, const page_start& from, const server_time& now);
/// Returns the query for keys with an expired holder.
[[nodiscard]] document expired_query(const page_start& from, std::int64_t now);

[[nodiscard]] document find_command(const settings& config, const document& query, std::int64_t max_count);
/// Returns a write that a majority has to confirm. A former primary cannot get this confirmation.
[[nodiscard]] document confirm_command(const settings& config);
/// Returns a write whose reply contains the server's time.
[[nodiscard]] document clock_command(const settings& config);
/// Returns the time in the reply to `clock_command`, in milliseconds. Empty: it is the reply to another command.
[[nodiscard]] std::optional<std::int64_t> read_time(const document& reply);
/// Returns whether the reply may lack documents for which it had no room.
[[nodiscard]] bool may_be_full(const document& reply);
/// Returns whether more documents may follow: a server ends a batch at 16 MB, even if it has fewer documents than
/// requested.
[[nodiscard]] bool may_have_more(const document& reply, std::int64_t count, std::int64_t max_count);
/// Calls `use` for each document in the first or next batch of a reply.
void for_each_document(const document& reply, const std::function<void(const bson_iter_t& fields)>& use);
/// Returns the key of a whole document.
[[nodiscard]] std::string key_of(const bson_iter_t& fields);

} // namespace colock::inline v0::mongo::detail
