// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/lookup.hpp"

#include "remote/resolve.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// Kept by what is still to end.
struct search
{
    explicit search(completion<lookup::result> then) : done(std::move(then)) {}

    void add(const boost::system::error_code& failed, const remote::addresses& found)
    {
        if (failed)
            known.trouble = failed.message();
        else
            std::ranges::transform(
                found, std::back_inserter(known.servers), [](const auto& each) { return each.endpoint(); });
    }
    void end_one()
    {
        if (--open == 0)
            done(std::move(known));
    }

    completion<lookup::result> done;
    lookup::result known;
    std::size_t open = 1;
};

} // namespace

void lookup::find(const std::vector<endpoint>& hosts, completion<result> done)
{
    const auto begun = std::make_shared<search>(std::move(done));
    for (const auto& [host, port] : hosts) {
        // Only a name needs the resolver, which starts a thread.
        if (const auto known = remote::numeric_endpoint(host, port)) {
            begun->known.servers.push_back(*known);
            continue;
        }
        ++begun->open;
        names_.async_resolve(
            host, port, [begun](const boost::system::error_code& failed, const remote::addresses& found) {
                begun->add(failed, found);
                begun->end_one();
            });
    }
    asio::post(names_.get_executor(), [begun] { begun->end_one(); });
}

} // namespace colock::zookeeper::detail
