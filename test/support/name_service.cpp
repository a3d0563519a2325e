// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "name_service.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>

#include <dlfcn.h>
#include <netdb.h>

namespace colock::testing {

namespace {

struct name_service
{
    std::mutex mutex;
    std::condition_variable answered;
    bool is_late = false;
    /// Number of objects that have been destroyed. The next object must not hold back the answers of the last one.
    int answers = 0;
    int questions = 0;
};

/// Not destroyed, because a lookup may still wait when the process ends.
name_service& names = *new name_service;

} // namespace

std::atomic<const char*> moving_name_address{"127.0.0.1"};

late_names::late_names()
{
    const std::lock_guard guard(names.mutex);
    names.is_late = true;
    names.questions = 0;
}

late_names::~late_names()
{
    const std::lock_guard guard(names.mutex);
    names.is_late = false;
    ++names.answers;
    names.answered.notify_all();
}

void late_names::wait_for_question(boost::asio::io_context& io)
{
    for (bool is_asked = false; !is_asked;) {
        io.restart();
        io.run_one_for(std::chrono::milliseconds(1));
        const std::lock_guard guard(names.mutex);
        is_asked = names.questions > 0;
    }
}

} // namespace colock::testing

// Replaces the function of the C library in this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    using namespace colock::testing;
    using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    const std::string_view name = node ? node : "";
    if (name == "moving.test")
        node = moving_name_address.load();
    if (name != "late.test")
        return real(node, service, hints, found);
    std::unique_lock guard(names.mutex);
    ++names.questions;
    names.answered.wait(guard, [before = names.answers] { return !names.is_late || names.answers != before; });
    return EAI_AGAIN;
}
