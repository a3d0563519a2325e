// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include "mongo/commands/query.hpp"
#include "mongo/driver/document.hpp"
#include "mongo/driver/driver.hpp"
#include "support/sockets.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::testing {

std::string missing_mongodb()
{
    return from_environment("COLOCK_TEST_MONGODB", "").empty() ? "there is no MongoDB server; see scripts/servers.sh"
                                                               : "";
}

namespace {

/// Result of a precondition. ctest reports a skipped suite by the printed line.
boost::test_tools::assertion_result runs_unless(const std::string& why, boost::unit_test::test_unit_id test)
{
    if (why.empty())
        return true;
    std::cout << "skipped: " << boost::unit_test::framework::get(test, boost::unit_test::TUT_ANY).full_name() << ": "
              << why << std::endl;
    boost::test_tools::assertion_result none(false);
    none.message() << why;
    return none;
}

/// Returns whether the server that tests share is FerretDB.
bool is_ferretdb()
{
    static const bool is_there =
        ask_mongodb(shared_mongodb(), "admin", R"({"buildInfo":1})").to_json().find("\"ferretdb\"") !=
        std::string::npos;
    return is_there;
}

} // namespace

boost::test_tools::assertion_result has_mongodb(boost::unit_test::test_unit_id suite)
{
    return runs_unless(missing_mongodb(), suite);
}

boost::test_tools::assertion_result not_ferretdb::operator()(boost::unit_test::test_unit_id test) const
{
    return runs_unless(missing_mongodb().empty() && is_ferretdb() ? "FerretDB has no " + lacking_ : "", test);
}

std::uint16_t shared_mongodb()
{
    const auto url = from_environment("COLOCK_TEST_MONGODB", "");
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

std::string mongodb_url(std::uint16_t port)
{
    return "mongodb://127.0.0.1:" + std::to_string(port) + "/?directConnection=true";
}

namespace {

mongo::detail::document reply_to(
    std::uint16_t port, const std::string& database, std::string_view command, bson_error_t& error)
{
    mongo::detail::start_driver();
    const std::unique_ptr<mongoc_client_t, decltype(&mongoc_client_destroy)> client(
        mongoc_client_new(mongodb_url(port).c_str()), &mongoc_client_destroy);
    const auto asked = mongo::detail::document::from_json(command);
    mongo::detail::document reply;
    error = {};
    static_cast<void>(
        mongoc_client_command_simple(client.get(), database.c_str(), asked.get(), nullptr, reply.overwrite(), &error));
    return reply;
}

} // namespace

mongo::detail::document ask_mongodb(std::uint16_t port, const std::string& database, std::string_view command)
{
    bson_error_t error;
    auto reply = reply_to(port, database, command, error);
    if (error.code != 0)
        throw std::runtime_error(error.message);
    return reply;
}

mongo::detail::document ask_mongodb_unchecked(std::uint16_t port, const std::string& database, std::string_view command)
{
    bson_error_t error;
    auto reply = reply_to(port, database, command, error);
    if (bson_empty(reply.get()))
        throw std::runtime_error(error.message);
    return reply;
}

std::vector<std::string> holders_at(std::uint16_t port, std::chrono::milliseconds lasting)
{
    const auto until = std::to_string(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count() +
        lasting.count());
    const auto is_later = R"({"$gt":{"$numberLong":")" + until + "\"}}";
    const auto found = ask_mongodb(port, "colock",
        R"({"find":"locks","filter":{"_id":{"$not":{"$type":"object"}},"$or":[{"x":)" + is_later + R"(},{"h.x":)" +
            is_later + R"(},{"wx":)" + is_later + "}]}}");
    std::vector<std::string> keys;
    mongo::detail::for_each_document(
        found, [&](const bson_iter_t& each) { keys.push_back(mongo::detail::key_of(each)); });
    return keys;
}

mongodb_server::mongodb_server(std::vector<std::string> options, std::vector<std::string> environment)
    : options_(std::move(options)), environment_(std::move(environment))
{
    on_free_port([this](std::uint16_t port) {
        port_ = port;
        start();
    });
}

std::size_t threads_of_this_process()
{
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

mongodb_server::~mongodb_server()
{
    process_.kill();
}

void mongodb_server::start()
{
    const auto program = from_environment("COLOCK_MONGODB_SERVER", "secantusd-py");
    std::vector<std::string> command{"env"};
    command.insert(command.end(), environment_.begin(), environment_.end());
    // The server syncs on each commit, because confirmed writes must survive a kill.
    command.insert(command.end(),
        {program, "--port", std::to_string(port_), "--storage-path", folder_.path() / "data", "--sync-on-commit"});
    std::istringstream common(from_environment("COLOCK_MONGODB_OPTIONS", ""));
    command.insert(command.end(), std::istream_iterator<std::string>(common), {});
    command.insert(command.end(), options_.begin(), options_.end());
    // After a kill, the old process may keep the port for a moment.
    for (int attempts = 1;; ++attempts) {
        process_ = child_process(command, folder_.path() / "log");
        try {
            wait_until_serving(process_, port_, "the MongoDB server did not start; see scripts/servers.sh");
            break;
        } catch (const std::runtime_error&) {
            if (attempts == 3)
                throw;
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
    // A new server that listens is not ready yet: if it is killed while it creates its tables, it can never start
    // again.
    if (std::ranges::find(options_, "--tls-cert-file") == options_.end())
        std::ignore = ask_mongodb(port_, "admin", R"({"hello":1})");
}

void mongodb_server::start(std::vector<std::string> options)
{
    options_ = std::move(options);
    start();
}

void mongodb_server::pause()
{
    process_.signal(SIGSTOP);
}

void mongodb_server::resume()
{
    process_.signal(SIGCONT);
}

void mongodb_server::kill()
{
    process_.kill();
}

} // namespace colock::testing
