// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/never_sent.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::redis::detail {

never_sent::never_sent(const asio::any_io_executor& strand, remote::parts_owner& owner, outbox& recycler)
    : strand_(strand), owner_(owner), recycler_(recycler)
{
}

void never_sent::add(std::deque<batch_ptr> operations, const failure_ptr& why)
{
    for (auto& each : operations)
        operations_.push_back({std::move(each), why});
}

void never_sent::add(remote::wait_sources::completions waits)
{
    std::ranges::move(waits, std::back_inserter(waits_));
}

void never_sent::tell()
{
    if (!telling_)
        tell_some();
}

void never_sent::tell_some()
{
    // Set before anybody is told: whoever is may give up more.
    telling_ = true;
    for (std::size_t room = most_per_turn; room > 0 && !operations_.empty();) {
        auto [operations, why] = std::move(operations_.front());
        operations_.pop_front();
        room -= std::min(room, operations->size());
        end(std::move(operations), why);
    }
    for (std::size_t room = most_per_turn; room > 0 && !waits_.empty(); --room) {
        auto ended = std::move(waits_.front());
        waits_.pop_front();
        ended(woken{});
    }
    telling_ = !empty();
    if (!telling_)
        return;
    asio::post(strand_, [self = owner_.keep(*this)] {
        self->tell_some();
        self->owner_.finish_close();
    });
}

void never_sent::end(batch_ptr unsent, const failure_ptr& why)
{
    for (auto& owner : unsent->take_all()) {
        auto& ended = *owner;
        ended.end(std::move(owner), delivery::unsent, why);
    }
    recycler_.recycle(std::move(unsent));
}

} // namespace colock::redis::detail
