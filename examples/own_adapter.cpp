// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A backend of one's own: five operations as coroutines. The core adds the rest: waiting, retries, cancellation,
// renewal, groups, and the settling of requests whose outcome nobody has heard.

#include <colock/colock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <iostream>
#include <map>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

//[ adapter
// A table on a server, 1 ms away. The strand makes it safe on a context with many threads.
class table_adapter : public colock::awaitable_adapter
{
public:
    explicit table_adapter(const asio::any_io_executor& executor) : awaitable_adapter(asio::make_strand(executor)) {}

    std::string_view name() const noexcept override { return "table"; }
    colock::capabilities capabilities() const noexcept override { return {.fence = true}; }

protected:
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        co_await round_trip();
        const auto now = colock::lease_clock::now();
        const auto [position, inserted] = rows_.try_emplace(claim->key());
        row& found = position->second;
        // A claim that is created twice finds its own grant: the first answer may have been lost.
        if (!inserted && found.token != claim->token() && now < found.expires)
            co_return colock::create_outcome::busy(found.expires - now);
        if (inserted || found.token != claim->token())
            found.fence = ++last_fence_;
        found.token = claim->token();
        found.expires = now + claim->ttl();
        co_return colock::create_outcome::granted(found.fence);
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim) override
    {
        co_await round_trip();
        if (!ours(*claim))
            co_return colock::release_outcome{colock::release_status::not_held};
        rows_.erase(claim->key());
        co_return colock::release_outcome{};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        co_await round_trip();
        if (!ours(*claim))
            co_return colock::extend_outcome{colock::extend_status::not_held};
        rows_[claim->key()].expires = colock::lease_clock::now() + ttl;
        co_return colock::extend_outcome{};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        co_await round_trip();
        co_return colock::valid_outcome{ours(*claim)};
    }

private:
    struct row
    {
        colock::token token;
        colock::lease_clock::time_point expires;
        std::uint64_t fence = 0;
    };

    asio::awaitable<void> round_trip() { co_await asio::steady_timer(executor(), 1ms).async_wait(); }
    bool ours(const colock::claim& claim) const
    {
        const auto found = rows_.find(claim.key());
        return found != rows_.end() && found->second.token == claim.token() &&
               colock::lease_clock::now() < found->second.expires;
    }

    std::map<std::string, row> rows_;
    std::uint64_t last_fence_ = 0;
};
//]

int main()
{
    asio::io_context io;
    colock::locker locker(std::make_shared<table_adapter>(io.get_executor()));
    const auto print = [](colock::lock& held) { std::cout << "fence " << held.fence() << '\n'; };
    for (int i = 0; i < 3; ++i)
        asio::co_spawn(io, locker.with_lock("job", print), [](std::exception_ptr failure) {
            if (failure)
                std::rethrow_exception(failure);
        });
    io.run();
}
