// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include "support/sockets.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace colock::testing {

namespace {

/// Sends a request, and returns the reply once it has `enough` bytes or the server closes the connection. A server that
/// has just begun to listen may reply without closing the connection.
std::string ask(std::uint16_t port, std::string_view request, std::size_t enough = 4096)
{
    const int socket = connect_to(port);
    if (socket < 0)
        return {};
    write_all(socket, request);
    std::string answer;
    std::array<char, 65'536> part{};
    while (answer.size() < enough) {
        const auto got = ::recv(socket, part.data(), part.size(), 0);
        if (got <= 0)
            break;
        answer.append(part.data(), static_cast<std::size_t>(got));
    }
    ::close(socket);
    return answer;
}

/// Returns the sessions, each followed by its nodes in indented lines.
std::istringstream dump(std::uint16_t port)
{
    auto output = ask(port, "dump", std::string::npos);
    // A server that does not serve lists no nodes, which proves nothing.
    if (output.find("Sessions with Ephemerals") == std::string::npos)
        throw std::runtime_error("a test's ZooKeeper server does not list its sessions");
    return std::istringstream(std::move(output));
}

template <class Number>
void put(std::string& to, Number number)
{
    for (int shift = static_cast<int>(sizeof number) * 8 - 8; shift >= 0; shift -= 8)
        to += static_cast<char>(number >> shift & 255);
}

/// Computes the password as the server does: the first bytes of java.util.Random.
std::string password_of(std::int64_t session)
{
    constexpr std::uint64_t factor = 0x5DEECE66D;
    constexpr std::uint64_t mask = (std::uint64_t{1} << 48) - 1;
    auto state = (static_cast<std::uint64_t>(session) ^ 0xB3415C00 ^ factor) & mask;
    std::string password;
    while (password.size() < 16) {
        state = (state * factor + 11) & mask;
        for (int byte = 0; byte < 4; ++byte)
            password += static_cast<char>(state >> (16 + 8 * byte) & 255);
    }
    return password;
}

/// Whether a line of the output of `dump` is the node that the beats of a session write.
bool is_of_session(std::string_view line)
{
    return line.find("/.s/") != std::string_view::npos;
}

} // namespace

std::uint16_t shared_zookeeper()
{
    const auto url = from_environment("COLOCK_TEST_ZOOKEEPER", "zookeeper://127.0.0.1:2181");
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

std::string zookeeper_url(std::uint16_t port)
{
    return "zookeeper://127.0.0.1:" + std::to_string(port);
}

void end_session(std::uint16_t port, std::int64_t session)
{
    std::string request;
    put(request, std::int32_t{44});
    put(request, std::int32_t{0});
    put(request, std::int64_t{0});
    put(request, std::int32_t{10'000});
    put(request, session);
    put(request, std::int32_t{16});
    request += password_of(session);
    // The first part of the request resumes the session, as its owner would. The second part closes the session.
    put(request, std::int32_t{8});
    put(request, std::int32_t{1});
    put(request, std::int32_t{-11});
    const auto answer = ask(port, request);
    std::string accepted_session;
    put(accepted_session, session);
    if (answer.find(accepted_session) == std::string::npos)
        throw std::runtime_error("a test's ZooKeeper server does not know the session that is to be ended");
}

std::vector<std::string> ephemeral_nodes(std::uint16_t port)
{
    auto output = dump(port);
    std::vector<std::string> nodes;
    for (std::string line; std::getline(output, line);) {
        if (line.starts_with("\t/") && !is_of_session(line))
            nodes.push_back(line.substr(1));
    }
    return nodes;
}

std::vector<std::int64_t> sessions_of(std::uint16_t port, std::string_view path)
{
    auto output = dump(port);
    std::vector<std::int64_t> sessions;
    std::int64_t session = 0;
    for (std::string line; std::getline(output, line);) {
        if (line.starts_with("0x"))
            session = static_cast<std::int64_t>(std::stoull(line, nullptr, 16));
        else if (line.starts_with('\t' + std::string(path)) && !is_of_session(line) &&
                 (sessions.empty() || sessions.back() != session))
            sessions.push_back(session);
    }
    return sessions;
}

std::string bytes_of_session(std::int64_t session)
{
    std::string bytes;
    put(bytes, session);
    return bytes;
}

int watches_at(std::uint16_t port)
{
    constexpr std::string_view total = "Total watches:";
    const auto output = ask(port, "wchs", std::string::npos);
    const auto at = output.find(total);
    if (at == std::string::npos)
        throw std::runtime_error("a test's ZooKeeper server does not report its watches");
    return std::stoi(output.substr(at + total.size()));
}

zookeeper_server::zookeeper_server()
{
    on_free_port([this](std::uint16_t port) {
        port_ = port;
        start();
    });
}

zookeeper_server::zookeeper_server(std::uint16_t port, std::size_t number, std::string peers)
    : port_(port), peers_(std::move(peers))
{
    std::filesystem::create_directory(folder_ / "data");
    std::ofstream(folder_ / "data/myid") << number << '\n';
}

std::string zookeeper_server::mode() const
{
    const auto output = ask(port_, "srvr");
    constexpr std::string_view word = "Mode: ";
    const auto begin = output.find(word);
    if (begin == std::string::npos)
        return {};
    return output.substr(begin + word.size(), output.find('\n', begin) - begin - word.size());
}

void zookeeper_server::start()
{
    launch();
    wait_until_serving();
}

void zookeeper_server::launch(const std::vector<std::string>& environment)
{
    std::ofstream(folder_ / "server.cfg") << "dataDir=" << (folder_ / "data").string() << "\nclientPort=" << port_
                                          << "\nclientPortAddress=127.0.0.1\ntickTime=500\nmaxClientCnxns=0\n"
                                             "admin.enableServer=false\nextendedTypesEnabled=true\n"
                                             "4lw.commands.whitelist=*\n"
                                          << peers_;
    const auto classes =
        from_environment("COLOCK_ZOOKEEPER_CLASSES", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar");
    std::vector<std::string> command{"env"};
    command.insert(command.end(), environment.begin(), environment.end());
    // With an environment, the server may have to wait for a disk that the test has made slow. Otherwise it does not
    // wait, because a busy disk can delay it by more than the session timeouts of the tests.
    const std::string sync = environment.empty() ? "no" : "yes";
    // Options for a quick start, because the server lives only for a test.
    command.insert(
        command.end(), {"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                           "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.forceSync=" + sync, "-cp",
                           classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", folder_ / "server.cfg"});
    process_ = child_process(command, folder_ / "log");
}

void zookeeper_server::wait_until_serving()
{
    const char* const why_not = "ZooKeeper did not start; see scripts/servers.sh";
    testing::wait_until_serving(process_, port_, why_not);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    constexpr std::string_view serving = "Zookeeper version";
    while (!ask(port_, "srvr", serving.size()).starts_with(serving)) {
        if (!process_.alive() || std::chrono::steady_clock::now() > limit)
            throw std::runtime_error(why_not);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

void zookeeper_server::pause()
{
    process_.signal(SIGSTOP);
}

void zookeeper_server::resume()
{
    process_.signal(SIGCONT);
}

void zookeeper_server::kill()
{
    process_.kill();
}

} // namespace colock::testing
