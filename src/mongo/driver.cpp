// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver.hpp"

#include <mutex>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

void start_driver()
{
    static std::once_flag once;
    std::call_once(once, [] {
        // The initialization logs, too, unless the driver was built to run it when it is loaded.
        mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
        mongoc_init();
    });
}

} // namespace colock::mongo::detail
