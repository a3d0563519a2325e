// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/backends.hpp"
#include "util/option_errors.hpp"

#include <colock/memory/adapter.hpp>

namespace colock::inline v0::detail {

std::shared_ptr<adapter> connect_memory(const asio::any_io_executor& executor, std::string_view url)
{
    if (url != "memory:" && url != "memory://")
        refuse_options("memory", "the URL has something behind its scheme; write memory:");
    return memory::make_adapter(executor);
}

} // namespace colock::inline v0::detail
