// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "quorum/adapter.hpp"
#include "redis/quorum_node.hpp"
#include "redis/url.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis {

std::shared_ptr<adapter> make_quorum(
    asio::any_io_executor executor, const std::vector<std::string>& urls, options settings)
{
    if (urls.size() < 3 || urls.size() % 2 == 0)
        detail::refuse_options("a quorum needs an odd number of masters, at least three");
    std::vector<std::shared_ptr<adapter>> nodes;
    std::vector<options> node_options;
    std::vector<detail::location> locations;
    for (const auto& url : urls) {
        settings.url = url;
        auto node = detail::take_url_options(settings);
        node.operation_timeout = node.operation_timeout.value_or(std::chrono::milliseconds(500));
        // The same server twice would have two votes for one set of data.
        auto location = detail::parse_url(node.url);
        location.user.clear();
        location.password.clear();
        location.database = 0;
        if (std::ranges::find(locations, location) != locations.end())
            detail::refuse_options("a quorum names a master twice");
        if (location.cluster)
            detail::refuse_options("a quorum names a cluster; name single masters that are in no cluster");
        locations.push_back(std::move(location));
        nodes.push_back(detail::make_quorum_node(executor, node));
        node_options.push_back(std::move(node));
    }
    const auto& common = node_options.front();
    for (const auto& each : node_options) {
        if (each.operation_timeout != common.operation_timeout || each.poll_interval != common.poll_interval)
            detail::refuse_options("the URLs of a quorum give different values of operation_timeout or poll_interval");
    }
    return quorum::make_adapter(std::move(executor), nodes,
        {.name = "redis quorum",
            .operation_timeout = *common.operation_timeout,
            .poll_interval = common.poll_interval});
}

} // namespace colock::inline v0::redis
