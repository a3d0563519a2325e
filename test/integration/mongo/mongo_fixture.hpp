// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/notes.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::testing {

using namespace std::chrono_literals;

/// Lockers that behave like separate processes: each has its own connections to one server.
struct mongo_fixture
{
    [[nodiscard]] mongo::options options(std::string url = {}) const
    {
        return {.url = url.empty() ? mongodb_url(server->port()) : std::move(url),
            .operation_timeout = 20s,
            .idle_timeout = 10min};
    }
    [[nodiscard]] locker add(const mongo::options& options)
    {
        last_adapter = mongo::make_adapter(io.get_executor(), options);
        return locker(last_adapter, {.operation_timeout = 20s, .observer = event_log});
    }
    [[nodiscard]] locker add() { return add(options()); }

    template <class T>
    T run(asio::awaitable<T> coroutine)
    {
        return run_coro(io, std::move(coroutine));
    }
    void until(const std::function<bool()>& reached) { run_until(io, reached); }

    mongo::detail::document ask(std::string_view command, const std::string& database = "colock") const
    {
        return ask_mongodb(server->port(), database, command);
    }
    /// Makes the next `times` commands fail, of those that `how` names.
    void fail(std::string_view how, int times = 1) const
    {
        static_cast<void>(ask(R"({"configureFailPoint":"failCommand","mode":{"times":)" + std::to_string(times) +
                                  R"(},"data":)" + std::string(how) + '}',
            "admin"));
    }
    [[nodiscard]] std::string lock_document(const std::string& key) const
    {
        return ask(R"({"find":"locks","filter":{"_id":")" + key + "\"}}").to_json();
    }

    // Created before the context, so that no handler runs without a server.
    std::optional<mongodb_server> own{std::in_place};
    mongodb_server* server = &*own;
    asio::io_context io;
    std::shared_ptr<notes> event_log = std::make_shared<notes>();
    std::shared_ptr<adapter> last_adapter;
};

/// A precondition: the server supports fail points.
inline boost::test_tools::assertion_result has_fail_points(boost::unit_test::test_unit_id)
{
    return from_environment("COLOCK_MONGODB_OPTIONS", "").find("--enable-test-commands") != std::string::npos;
}

/// A precondition. ThreadSanitizer treats fibers as threads. In the child of a fork, it ignores only the fiber that has
/// forked.
inline boost::test_tools::assertion_result may_fork_with_fibers(boost::unit_test::test_unit_id)
{
#if defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return false;
#endif
#endif
    return true;
}

} // namespace colock::testing
