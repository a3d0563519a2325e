// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/answer.hpp"
#include "mongo/driver/connection.hpp"
#include "mongo/driver/document.hpp"
#include "mongo/templates/lock_view.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::mongo::detail {

struct settings;
class batchable_operation;

/// Returns how many batches should be in flight for a number of operations. Each command costs the server and the
/// client more than another statement in a command. One or two operations do not wait for each other. If the operations
/// do not fit into one batch, a second batch lets the server and the client work at the same time.
[[nodiscard]] std::size_t batch_count(std::size_t operations) noexcept;
/// Returns how many operations should share a batch.
[[nodiscard]] std::size_t batch_size(std::size_t operations) noexcept;

/// Operations that are sent together: an update with their statements, then a `find` for the operations that need their
/// documents. Each operation gets its own result, as if it had been sent alone.
class batch final : public task
{
public:
    using member_ptr = boost::intrusive_ptr<batchable_operation>;

    /// \param no_change_code code with which the server fails a statement that must change nothing
    batch(const settings& config, std::span<const member_ptr> members, std::int32_t no_change_code = changes_nothing);
    ~batch() override;

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    /// Returns whether all operations were notified.
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }
    /// Removes an operation, which is not notified any more. Returns whether no operation is left.
    [[nodiscard]] bool leave(const batchable_operation& which) noexcept;

    void perform(::_mongoc_client_t& driver) noexcept override;
    void fail(answer result) noexcept override { update_result_ = std::move(result); }
    void set_cause(const error_code& cause, bool was_sent) override;
    [[nodiscard]] bool ends_connection() const noexcept override
    {
        return update_result_.ends_connection || find_result_.ends_connection;
    }
    void on_end() override;

private:
    struct member
    {
        /// Null after the operation has left or was notified.
        member_ptr operation;
        bool needs_document;
        /// Index of the operation's statement in the update.
        std::size_t statement = 0;
    };
    [[nodiscard]] document make_update(const settings& config);
    [[nodiscard]] document make_find(const settings& config) const;

    const std::string database_;
    const std::int32_t no_change_code_;
    std::vector<member> members_;
    std::size_t statement_count_ = 0;
    document update_;
    /// Empty: no operation needs its document.
    document find_;
    answer update_result_;
    answer find_result_;
    bool is_over_ = false;
};

} // namespace colock::inline v0::mongo::detail
