// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection.hpp"
#include "mongo/commands/lock_view.hpp"
#include "mongo/driver/answer.hpp"
#include "mongo/driver/document.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::mongo::detail {

struct settings;
class batchable_operation;

/// How many commands are worth having under way: each costs a server, and us, more than another statement in one. Few
/// operations do not wait for each other, and where there are more than fit in one, both sides are to work at the same
/// time.
[[nodiscard]] std::size_t worthwhile_commands(std::size_t operations) noexcept;
/// How many operations share one.
[[nodiscard]] std::size_t worthwhile_statements(std::size_t operations) noexcept;

/// What became of each statement of an update.
class statement_errors
{
public:
    explicit statement_errors(const document& reply);

    /// Null: it was done.
    [[nodiscard]] const answer* find(std::size_t statement) const noexcept;
    /// The answer's numbers are those of `count` statements, of which all but these were done.
    [[nodiscard]] bool accounts_for(std::size_t count) const noexcept;

private:
    std::map<std::size_t, answer> failed_;
    std::int64_t done_ = 0;
};

/// Operations that travel together: an update with a statement for each, then a look at the documents of those who
/// want it. Each has its own answer, as if it had gone alone.
class batch final : public task
{
public:
    using member_ptr = boost::intrusive_ptr<batchable_operation>;

    /// \param no_change_code with which the server refuses a statement that may change nothing
    batch(const settings& config, std::span<const member_ptr> members, std::int32_t no_change_code = changes_nothing);
    ~batch() override;

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    /// All were told.
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    /// It is not told. True: nobody is.
    [[nodiscard]] bool leave(const batchable_operation& which) noexcept;

    void perform(::_mongoc_client_t& driver) noexcept override;
    void fail(answer why) noexcept override { updated_ = std::move(why); }
    void blame(const error_code& cause, bool was_sent) override;
    [[nodiscard]] bool spoils() const noexcept override { return updated_.spoils || looked_.spoils; }
    void performed() override;

private:
    struct member
    {
        /// Null once it has left, or was told.
        member_ptr who;
        bool looks;
        /// Of the update.
        std::size_t statement = 0;
    };
    [[nodiscard]] document make_update(const settings& config);
    [[nodiscard]] document make_look(const settings& config) const;

    const std::string database_;
    const std::int32_t no_change_code_;
    std::vector<member> members_;
    std::size_t statements_ = 0;
    document update_;
    /// Empty: nobody wants it.
    document look_;
    answer updated_;
    answer looked_;
    bool is_over_ = false;
};

} // namespace colock::mongo::detail
