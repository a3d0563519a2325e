// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/election.hpp>

#include <utility>

namespace colock::inline v0 {

election::election(locker candidate, key_name key, acquire_options options)
    : locker_(std::move(candidate)), key_(std::move(key.name)), options_(std::move(options))
{
}

asio::awaitable<leadership> election::campaign() const
{
    return detail::operations::campaign(locker_.core(), key_, options_);
}

asio::awaitable<std::optional<leader>> election::leader() const
{
    return detail::operations::find_leader(locker_.core(), key_);
}

asio::awaitable<leader> election::next_leader(std::uint64_t after_term) const
{
    return detail::operations::await_leader(locker_.core(), key_, after_term);
}

} // namespace colock::inline v0
