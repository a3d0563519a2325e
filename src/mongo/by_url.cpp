// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/connect.hpp>
#include <colock/mongo/adapter.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::mongo {

namespace {

std::shared_ptr<adapter> make_by_url(
    const asio::any_io_executor& executor, std::string_view url, const connect_options& options)
{
    return make_adapter(
        executor, {.url = std::string(url), .user = options.user, .password = options.password, .tls = options.tls});
}

} // namespace

constinit const url_backend by_url{
    .schemes = {"mongodb"},
    .forms = "mongodb://host:port,host:port/database?replicaSet=name",
    .make = make_by_url,
};

} // namespace colock::inline v0::mongo
