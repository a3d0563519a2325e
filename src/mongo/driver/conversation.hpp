// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/question.hpp"
#include "mongo/topology/primary.hpp"

#include <memory>
#include <utility>

namespace colock::mongo::detail {

/// Sends questions to the primary, one at a time. A question that is asked while an answer is being handled goes to the
/// connection of that answer. The server that gave an answer therefore also confirms it, even if the primary has
/// changed.
///
/// Thread safety: none; belongs to the strand.
class conversation
{
public:
    void ask(primary& whom, const std::shared_ptr<question>& what)
    {
        under_way_ = what;
        if (answered_)
            whom.ask_next(*answered_, what);
        else
            whom.ask(what);
    }
    /// The question under way is given up, and nobody is told of it.
    void end(primary& whom)
    {
        if (const auto left = std::exchange(under_way_, {}).lock()) {
            left->drop();
            whom.give_up(*left);
        }
    }

    /// Stands while an answer is told.
    class telling
    {
    public:
        explicit telling(conversation& of) noexcept : of_(of)
        {
            of_.answered_ = std::exchange(of_.under_way_, {}).lock();
        }
        ~telling() { of_.answered_ = nullptr; }
        telling(const telling&) = delete;
        telling& operator=(const telling&) = delete;

    private:
        conversation& of_;
    };

private:
    /// It keeps whoever has asked, as long as its lane does.
    std::weak_ptr<question> under_way_;
    std::shared_ptr<question> answered_;
};

} // namespace colock::mongo::detail
