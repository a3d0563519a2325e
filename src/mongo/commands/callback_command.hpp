// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/command.hpp"

#include <functional>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

/// A command whose answer is passed to a function.
class callback_command final : public command
{
public:
    using handler = std::function<void(const answer&)>;

    callback_command(std::string database, document request, handler then)
        : command(std::move(database), std::move(request)), then_(std::move(then))
    {
    }
    callback_command(dated_hello, handler then) : command(dated_hello{}), then_(std::move(then)) {}

    /// Removes the handler, so that it is not called.
    void drop() noexcept { then_ = nullptr; }
    void on_end() override
    {
        if (const auto then = std::exchange(then_, nullptr))
            then(result());
    }

private:
    handler then_;
};

} // namespace colock::inline v0::mongo::detail
