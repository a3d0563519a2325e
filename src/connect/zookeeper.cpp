// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/backends.hpp"
#include "util/option_errors.hpp"

#include <colock/zookeeper/adapter.hpp>

#include <string>

namespace colock::inline v0::detail {

std::shared_ptr<adapter> connect_zookeeper(
    const asio::any_io_executor& executor, std::string_view url, const connect_options& how)
{
    if (how.tls != tls_options{})
        refuse_options("zookeeper", "TLS files are given, but connections to ZooKeeper are not encrypted");
    return zookeeper::make_adapter(executor, {.url = std::string(url), .user = how.user, .password = how.password});
}

} // namespace colock::inline v0::detail
