// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "late_names.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>

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

// With --wrap, the linker redirects the program's calls of getaddrinfo to the second function.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" int __real_getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found);
extern "C" int __wrap_getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found)
{
    using namespace colock::testing;
    if (!name || std::string_view(name) != "late.test")
        return __real_getaddrinfo(name, service, hints, found);
    std::unique_lock guard(names.mutex);
    ++names.questions;
    names.answered.wait(guard, [before = names.answers] { return !names.is_late || names.answers != before; });
    return EAI_AGAIN;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
