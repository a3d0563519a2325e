// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/answer.hpp"
#include "mongo/driver/document.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace colock::inline v0::mongo::detail {

/// Errors of the statements of an update, by the index of the statement.
class statement_errors
{
public:
    explicit statement_errors(const document& reply);

    /// Returns the error of a statement. Null: the statement was carried out.
    [[nodiscard]] const answer* find(std::size_t statement) const noexcept;
    /// Returns whether the reply accounts for `count` statements: all except the failed ones were carried out.
    [[nodiscard]] bool accounts_for(std::size_t count) const noexcept;

private:
    std::map<std::size_t, answer> failed_;
    std::int64_t done_count_ = 0;
};

} // namespace colock::inline v0::mongo::detail
