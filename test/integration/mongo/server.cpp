// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include "support/sockets.hpp"

#include <csignal>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

namespace colock::testing {

boost::test_tools::assertion_result has_mongodb(boost::unit_test::test_unit_id suite)
{
    if (!from_environment("COLOCK_TEST_MONGODB", "").empty())
        return true;
    const char* const why = "there is no MongoDB server; see scripts/servers.sh";
    std::cout << "skipped: " << boost::unit_test::framework::get(suite, boost::unit_test::TUT_ANY).full_name() << ": "
              << why << std::endl;
    boost::test_tools::assertion_result none(false);
    none.message() << why;
    return none;
}

std::uint16_t shared_mongodb()
{
    const auto url = from_environment("COLOCK_TEST_MONGODB", "");
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

mongodb_server::mongodb_server(std::vector<std::string> options) : options_(std::move(options))
{
    on_free_port([this](std::uint16_t port) {
        port_ = port;
        start();
    });
}

mongodb_server::~mongodb_server()
{
    process_.kill();
}

void mongodb_server::start()
{
    const auto program = from_environment("COLOCK_MONGODB_SERVER", "secantusd-py");
    std::vector<std::string> command{
        program, "--port", std::to_string(port_), "--storage-path", folder_.path() / "data"};
    std::istringstream common(from_environment("COLOCK_MONGODB_OPTIONS", ""));
    command.insert(command.end(), std::istream_iterator<std::string>(common), {});
    command.insert(command.end(), options_.begin(), options_.end());
    process_ = child_process(command, folder_.path() / "log");
    wait_until_serving(process_, port_, "the MongoDB server did not start; see scripts/servers.sh");
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
