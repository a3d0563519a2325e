// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/primary.hpp"
#include "mongo/question.hpp"

#include <memory>
#include <utility>

namespace colock::mongo::detail {

/// Questions to the primary, one at a time. One that is asked while the answer to the last is told goes to the
/// connection that has given that answer: what a server says is confirmed by the same server, wherever the next
/// connection would lead.
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
