// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/lookup.hpp"

#include "net/resolve.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// Kept by what is still to end.
struct search
{
    explicit search(completion<lookup::result> then) : done(std::move(then)) {}

    void add(const std::string& host, const boost::system::error_code& failed, const remote::addresses& found)
    {
        if (failed)
            known.trouble = {host + ": " + failed.message(), failed};
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

struct lookup::memory
{
    std::vector<asio::ip::tcp::endpoint> known{};
    bool searching = false;
};

lookup::lookup(const asio::any_io_executor& executor) : before_(std::make_shared<memory>()), names_(executor) {}

void lookup::find(const std::vector<endpoint>& hosts, completion<result> done)
{
    before_->searching = true;
    const auto begun = std::make_shared<search>([before = before_, done = std::move(done)](result found) mutable {
        before->searching = false;
        before->known = found.servers;
        std::ranges::shuffle(found.servers, std::random_device());
        done(std::move(found));
    });
    for (const auto& [host, port] : hosts) {
        // Only a name needs the resolver, which starts a thread.
        if (const auto known = remote::numeric_endpoint(host, port)) {
            begun->known.servers.push_back(*known);
            continue;
        }
        ++begun->open;
        names_.async_resolve(
            host, port, [begun, host](const boost::system::error_code& failed, const remote::addresses& found) {
                begun->add(host, failed, found);
                begun->end_one();
            });
    }
    asio::post(names_.get_executor(), [begun] { begun->end_one(); });
}

void lookup::find_others(const std::vector<endpoint>& hosts, completion<result> done)
{
    const bool are_numeric = std::ranges::all_of(
        hosts, [](const auto& each) { return remote::numeric_endpoint(each.host, each.port).has_value(); });
    if (are_numeric || before_->searching)
        return;
    find(hosts, [old = before_->known, before = before_, done = std::move(done)](result found) mutable {
        if (found.servers.empty())
            before->known = std::move(old);
        else if (!std::ranges::is_permutation(old, found.servers))
            done(std::move(found));
    });
}

} // namespace colock::zookeeper::detail
