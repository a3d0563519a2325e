// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/backends.hpp"

#include <colock/mongo/adapter.hpp>

#include <string>

namespace colock::inline v0::detail {

std::shared_ptr<adapter> connect_mongo(
    const asio::any_io_executor& executor, std::string_view url, const connect_options& how)
{
    return mongo::make_adapter(
        executor, {.url = std::string(url), .user = how.user, .password = how.password, .tls = how.tls});
}

} // namespace colock::inline v0::detail
