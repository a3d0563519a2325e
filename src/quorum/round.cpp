// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/round.hpp"

#include <cstddef>
#include <utility>

namespace colock::inline v0::quorum {

void round::retire()
{
    is_over = true;
    for (const auto& each : node_claims)
        each->abandon_in_background();
}

asio::awaitable<vote_count> adopt(const round& current, std::vector<std::string> parts)
{
    const auto votes = std::make_shared<vote>(current.awaited, parts.size(), judge_adopt);
    const auto ask = [&](std::size_t index, completion<create_outcome> done) {
        current.node_claims[index]->create(lease_clock::now(), std::move(parts[index]), std::move(done));
    };
    // A node without a part cannot hold the lock of the ticket.
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].empty())
            votes->count(create_outcome::busy());
        else
            indices.push_back(i);
    }
    auto next = indices.begin();
    create_outcome first = create_outcome::failed(nullptr);
    while (first.status == create_status::failed && next != indices.end()) {
        const auto index = *next++;
        auto answers = co_await await_all<create_outcome>(
            current.awaited, 1, [&](std::size_t, auto done) { ask(index, std::move(done)); });
        first = std::move(answers.front());
        votes->count(first);
    }
    for (; next != indices.end(); ++next) {
        if (first.status == create_status::granted)
            ask(*next, vote::counter<create_outcome>(votes));
        else
            votes->count(first);
    }
    co_return co_await votes->decision();
}

} // namespace colock::inline v0::quorum
