// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver.hpp"

#include <mutex>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

void start_driver()
{
    static std::once_flag once;
    std::call_once(once, [] {
        mongoc_init();
        mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
    });
}

} // namespace colock::mongo::detail
