// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/option_errors.hpp"

#include <colock/connect.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper {

namespace {

std::shared_ptr<adapter> make_by_url(
    const asio::any_io_executor& executor, std::string_view url, const connect_options& options)
{
    if (options.tls != tls_options{})
        colock::detail::refuse_options(
            "zookeeper", "TLS files are given, but connections to ZooKeeper are not encrypted");
    return make_adapter(executor, {.url = std::string(url), .user = options.user, .password = options.password});
}

} // namespace

constinit const url_backend by_url{
    .schemes = {"zookeeper"},
    .forms = "zookeeper://host:port,host:port/chroot",
    .make = make_by_url,
};

} // namespace colock::inline v0::zookeeper
