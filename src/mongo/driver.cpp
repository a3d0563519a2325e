// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver.hpp"

#include <mutex>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

namespace {

thread_local driver_log* told = nullptr;

void on_message(mongoc_log_level_t level, const char*, const char* message, void*)
{
    if (told && level <= MONGOC_LOG_LEVEL_WARNING)
        told->on_log(message);
}

} // namespace

void start_driver()
{
    static std::once_flag once;
    std::call_once(once, [] {
        mongoc_init();
        mongoc_log_set_handler(&on_message, nullptr);
    });
}

driver_log::listener::listener(driver_log& to) noexcept : before_(told)
{
    told = &to;
}

driver_log::listener::~listener()
{
    told = before_;
}

} // namespace colock::mongo::detail
