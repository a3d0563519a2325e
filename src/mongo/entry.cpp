// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/backends.hpp"

#include <colock/mongo/adapter.hpp>

#include <string>

namespace colock::mongo {

extern colock::detail::backend::connect_function connect;

std::shared_ptr<adapter> connect(const asio::any_io_executor& executor, std::string_view text)
{
    return make_adapter(executor, {.url = std::string(text)});
}

} // namespace colock::mongo
