// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/server_lookup.hpp"

#include "net/resolve.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// State of one lookup, which is shared by the requests that have not ended.
struct search
{
    explicit search(completion<server_lookup::result> then) : done(std::move(then)) {}

    void add(const std::string& host, const boost::system::error_code& failed, const remote::addresses& found)
    {
        if (failed)
            known.connection_failure = {host + ": " + failed.message(), failed};
        else
            std::ranges::transform(
                found, std::back_inserter(known.servers), [](const auto& each) { return each.endpoint(); });
    }
    void end_one()
    {
        if (--open == 0)
            done(std::move(known));
    }

    completion<server_lookup::result> done;
    server_lookup::result known;
    std::size_t open = 1;
};

} // namespace

struct server_lookup::known_servers
{
    std::vector<asio::ip::tcp::endpoint> known{};
    bool searching = false;
};

server_lookup::server_lookup(const asio::any_io_executor& executor)
    : previous_(std::make_shared<known_servers>()), resolver_(executor)
{
}

void server_lookup::find(const std::vector<endpoint>& hosts, completion<result> done)
{
    previous_->searching = true;
    const auto state = std::make_shared<search>([previous = previous_, done = std::move(done)](result found) mutable {
        previous->searching = false;
        previous->known = found.servers;
        std::ranges::shuffle(found.servers, std::random_device());
        done(std::move(found));
    });
    for (const auto& [host, port] : hosts) {
        // Only a name needs the resolver, which starts a thread.
        if (const auto known = remote::numeric_endpoint(host, port)) {
            state->known.servers.push_back(*known);
            continue;
        }
        ++state->open;
        resolver_.async_resolve(host, port,
            [state, host, executor = resolver_.get_executor()](
                const boost::system::error_code& failed, const remote::addresses& found) {
                const auto problem =
                    failed ? remote::socket_problem(executor, asio::ip::tcp::v4()) : boost::system::error_code();
                state->add(host, problem ? problem : failed, found);
                state->end_one();
            });
    }
    asio::post(resolver_.get_executor(), [state] { state->end_one(); });
}

void server_lookup::find_others(const std::vector<endpoint>& hosts, completion<result> done)
{
    const bool are_numeric = std::ranges::all_of(
        hosts, [](const auto& each) { return remote::numeric_endpoint(each.host, each.port).has_value(); });
    if (are_numeric || previous_->searching)
        return;
    find(hosts, [old = previous_->known, previous = previous_, done = std::move(done)](result found) mutable {
        if (found.servers.empty())
            previous->known = std::move(old);
        else if (!std::ranges::is_permutation(old, found.servers))
            done(std::move(found));
    });
}

} // namespace colock::inline v0::zookeeper::detail
