// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/callback_command.hpp"
#include "mongo/topology/primary.hpp"

#include <memory>
#include <utility>

namespace colock::inline v0::mongo::detail {

/// Sends commands to the primary, one at a time. A command that is sent while an answer is being handled uses the
/// connection of that answer. Therefore the server that gave an answer also confirms it, even if the primary has
/// changed.
///
/// Thread safety: none; belongs to the strand.
class command_chain
{
public:
    void ask(primary& whom, const std::shared_ptr<callback_command>& what)
    {
        pending_ = what;
        if (current_answer_)
            whom.ask_next(*current_answer_, what);
        else
            whom.ask(what);
    }
    /// Gives up the command in progress. Its handler is not called.
    void end(primary& whom)
    {
        if (const auto left = std::exchange(pending_, {}).lock()) {
            left->drop();
            whom.give_up(*left);
        }
    }

    /// Guard that exists while an answer is being handled.
    class answer_scope
    {
    public:
        explicit answer_scope(command_chain& of) noexcept : of_(of)
        {
            of_.current_answer_ = std::exchange(of_.pending_, {}).lock();
        }
        ~answer_scope() { of_.current_answer_ = nullptr; }
        answer_scope(const answer_scope&) = delete;
        answer_scope& operator=(const answer_scope&) = delete;

    private:
        command_chain& of_;
    };

private:
    /// Command in progress. Its connection owns the command, and the command keeps its sender alive.
    std::weak_ptr<callback_command> pending_;
    std::shared_ptr<callback_command> current_answer_;
};

} // namespace colock::inline v0::mongo::detail
