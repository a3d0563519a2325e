// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"
#include "mongo/settings.hpp"

#include <colock/status.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace colock::mongo::detail {

/// Behind which document a page begins. Keys that are text come first, then those that are none: a server compares
/// either only with its like, and so never with documents of ours that belong to no key.
class page_start
{
public:
    /// \param cursor as `text` has told; empty: the first
    /// \return nothing for what it has not
    [[nodiscard]] static std::optional<page_start> from(std::string_view cursor);

    [[nodiscard]] std::string text() const;
    void move_behind(std::string key) { last_ = std::move(key); }
    /// False: that was done before, and nothing more comes.
    [[nodiscard]] bool skip_text() noexcept;

    /// Adds the condition on `_id`.
    void append_to(bson_t& query) const;
    [[nodiscard]] bool is_text() const noexcept { return is_text_; }

private:
    bool is_text_ = true;
    std::string last_;
};

[[nodiscard]] document key_query(std::string_view key);
[[nodiscard]] document keys_query(std::span<const std::string_view> keys);
/// Of live holders: what a server can decide of it.
/// \param now the server's time
[[nodiscard]] document list_query(const filter& wanted, const page_start& from, std::int64_t now);
/// Of keys with a holder who has expired.
[[nodiscard]] document expired_query(const page_start& from, std::int64_t now);

[[nodiscard]] document find_command(const settings& config, const document& query, std::int64_t most);
/// A write that a majority has to confirm: a server that is not the primary any more cannot have that.
[[nodiscard]] document confirm_command(const settings& config);
/// Whether such an answer may have left out documents for which it had no room.
[[nodiscard]] bool may_be_full(const document& reply);
/// Whether there may be more behind such an answer: a server ends a batch at 16 MB, however few documents that are.
[[nodiscard]] bool may_go_on(const document& reply, std::int64_t count, std::int64_t most);
/// Of the first batch of an answer, or the next.
void for_each_document(const document& reply, const std::function<void(const bson_iter_t& fields)>& use);
/// Of a whole document.
[[nodiscard]] std::string key_of(const bson_iter_t& fields);

} // namespace colock::mongo::detail
