// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/adoption.hpp"

#include "quorum/decisions.hpp"

#include <colock/clock.hpp>

#include <algorithm>
#include <utility>

namespace colock::inline v0::quorum {

adoption::adoption(std::vector<std::shared_ptr<node_claim>> node_claims, std::vector<std::string> parts,
    completion<create_outcome> done)
    : node_claims_(std::move(node_claims)), parts_(std::move(parts)),
      votes_(node_claims_.size(), decide_adopt, std::move(done))
{
}

void adoption::start()
{
    // A node without a part cannot hold the lock of the ticket.
    for (auto missing = std::ranges::count(parts_, std::string()); missing > 0; --missing)
        count(create_outcome::busy());
    ask_next();
}

void adoption::ask_next()
{
    while (next_ < parts_.size() && parts_[next_].empty())
        ++next_;
    if (next_ == parts_.size())
        return;
    const auto current = next_++;
    // A node that is asked late has its full operation timeout, too.
    node_claims_[current]->adopt(lease_clock::now(), std::move(parts_[current]),
        [self = shared_from_this()](const create_outcome& outcome) { self->on_answer(outcome); });
}

void adoption::on_answer(const create_outcome& outcome)
{
    count(outcome);
    switch (outcome.status) {
    case create_status::granted:
        ask_rest();
        return;
    case create_status::busy:
        refuse_rest();
        return;
    case create_status::failed:
        ask_next();
        return;
    }
}

void adoption::ask_rest()
{
    for (; next_ < parts_.size(); ++next_) {
        if (!parts_[next_].empty())
            node_claims_[next_]->adopt(lease_clock::now(), std::move(parts_[next_]),
                [self = shared_from_this()](const create_outcome& outcome) { self->count(outcome); });
    }
}

void adoption::refuse_rest()
{
    for (; next_ < parts_.size(); ++next_) {
        if (!parts_[next_].empty())
            count(create_outcome::busy());
    }
}

void adoption::count(const create_outcome& outcome)
{
    votes_.count([&](vote_count& counted) { count_create(counted, outcome); });
}

} // namespace colock::inline v0::quorum
