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
    void ask(primary& server, const std::shared_ptr<callback_command>& command)
    {
        pending_ = command;
        if (current_answer_)
            server.ask_next(*current_answer_, command);
        else
            server.ask(command);
    }
    /// Gives up the command in progress. Its handler is not called.
    void end(primary& server)
    {
        if (const auto command = std::exchange(pending_, {}).lock()) {
            command->drop();
            server.give_up(*command);
        }
    }

    /// Guard that exists while an answer is being handled.
    class answer_scope
    {
    public:
        explicit answer_scope(command_chain& chain) noexcept : chain_(chain)
        {
            chain_.current_answer_ = std::exchange(chain_.pending_, {}).lock();
        }
        ~answer_scope() { chain_.current_answer_ = nullptr; }
        answer_scope(const answer_scope&) = delete;
        answer_scope& operator=(const answer_scope&) = delete;

    private:
        command_chain& chain_;
    };

private:
    /// Command in progress. Its connection owns the command, and the command keeps its sender alive.
    std::weak_ptr<callback_command> pending_;
    std::shared_ptr<callback_command> current_answer_;
};

} // namespace colock::inline v0::mongo::detail
