// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/answer.hpp"
#include "mongo/driver/connection.hpp"
#include "mongo/driver/document.hpp"

#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

/// One command to the server of a connection.
class command : public task
{
public:
    /// \param database name of the database on which the command is run
    command(std::string database, document request);
    /// Selects a `hello` command whose reply shows the server's clock. If the first `hello` also had to connect, a
    /// second one is sent: connecting takes an unknown time, so the first reply says nothing about the clock.
    struct dated_hello
    {
    };
    explicit command(dated_hello);

    [[nodiscard]] const answer& result() const noexcept { return result_; }
    [[nodiscard]] bool ends_connection() const noexcept final { return result_.ends_connection; }

private:
    void perform(::_mongoc_client_t& driver) noexcept final;
    void ask_once(::_mongoc_client_t& driver) noexcept;
    void fail(answer result) noexcept final { result_ = std::move(result); }
    void set_cause(const error_code& cause, bool was_sent) final { result_.set_cause(cause, was_sent); }

    const std::string database_;
    const document request_;
    const bool is_dated_ = false;
    answer result_;
};

} // namespace colock::inline v0::mongo::detail
