// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection.hpp"
#include "mongo/driver/answer.hpp"
#include "mongo/driver/document.hpp"

#include <string>
#include <utility>

namespace colock::mongo::detail {

/// One command to the server that a lane is connected to.
class command : public task
{
public:
    /// \param database that it is sent to
    command(std::string database, document asked);
    /// `hello`, asked a second time if the first had to connect: that takes any time, and so tells nothing of the
    /// clock.
    struct dated_hello
    {
    };
    explicit command(dated_hello);

    [[nodiscard]] const answer& got() const noexcept { return got_; }
    [[nodiscard]] bool spoils() const noexcept final { return got_.spoils; }

private:
    void perform(::_mongoc_client_t& driver) noexcept final;
    void ask_once(::_mongoc_client_t& driver) noexcept;
    void fail(answer why) noexcept final { got_ = std::move(why); }
    void blame(const error_code& cause, bool was_sent) final { got_.blame(cause, was_sent); }

    const std::string database_;
    const document asked_;
    const bool is_dated_ = false;
    answer got_;
};

} // namespace colock::mongo::detail
