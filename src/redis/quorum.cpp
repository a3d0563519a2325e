// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "quorum/adapter.hpp"
#include "redis/url.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis {

std::shared_ptr<adapter> make_quorum(
    asio::any_io_executor executor, const std::vector<std::string>& urls, options settings)
{
    if (urls.size() < 3 || urls.size() % 2 == 0)
        detail::refuse_options("a quorum needs an odd number of masters, at least three");
    settings.operation_timeout = settings.operation_timeout.value_or(std::chrono::milliseconds(500));
    std::vector<std::shared_ptr<adapter>> nodes;
    std::vector<detail::location> places;
    for (const auto& url : urls) {
        settings.url = url;
        // The same server twice would have two votes for one set of data.
        auto place = detail::parse_url(url);
        place.user.clear();
        place.password.clear();
        place.database = 0;
        if (std::ranges::find(places, place) != places.end())
            detail::refuse_options("a quorum names a master twice");
        places.push_back(std::move(place));
        nodes.push_back(make_adapter(executor, settings));
    }
    return quorum::make_adapter(std::move(executor), nodes,
        {.name = "redis quorum",
            .operation_timeout = *settings.operation_timeout,
            .poll_interval = settings.poll_interval});
}

} // namespace colock::inline v0::redis
