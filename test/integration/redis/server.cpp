// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace colock::testing {

namespace {

using namespace std::chrono_literals;

sockaddr_in loopback(std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int connect_to(std::uint16_t port)
{
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    const timeval limit{30, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return socket;
    ::close(socket);
    return -1;
}

void write_all(int socket, std::string_view text)
{
    while (!text.empty()) {
        const auto written = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (written <= 0)
            throw std::runtime_error("a test's server has closed its connection");
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

template <class Condition>
void wait_until(Condition reached, const char* what)
{
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!reached()) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error(std::string("a test's server did not ") + what);
        std::this_thread::sleep_for(10ms);
    }
}

std::string from_environment(const char* name, std::string otherwise)
{
    const char* const value = std::getenv(name);
    return value && *value ? value : std::move(otherwise);
}

} // namespace

std::filesystem::path make_folder()
{
    std::string pattern = std::filesystem::temp_directory_path() / "colock-redis-XXXXXX";
    if (!::mkdtemp(pattern.data()))
        throw std::system_error(errno, std::generic_category(), "mkdtemp");
    return pattern;
}

std::filesystem::path cache_folder()
{
    const char* const home = std::getenv("HOME");
    return from_environment("XDG_CACHE_HOME", std::string(home ? home : "") + "/.cache") + "/colock";
}

std::uint16_t free_port()
{
    // Below the ports that the system gives to connections, any of which could take it meanwhile.
    std::random_device random;
    std::uniform_int_distribution<unsigned> any(20'000, 31'999);
    for (int i = 0; i < 1000; ++i) {
        const auto port = static_cast<std::uint16_t>(any(random));
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto address = loopback(port);
        const bool free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        ::close(socket);
        if (free)
            return port;
    }
    throw std::runtime_error("there is no free port");
}

child_process::child_process(
    const std::vector<std::string>& command, const std::filesystem::path& log, std::optional<int> talk)
{
    std::vector<char*> words;
    for (const auto& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const std::string log_name = log;
    id_ = ::fork();
    if (id_ < 0)
        throw std::system_error(errno, std::generic_category(), "fork");
    if (id_ > 0)
        return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = ::open(log_name.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(talk.value_or(file), 1);
    ::dup2(file, 2);
    if (talk)
        ::dup2(*talk, 0);
    ::execvp(words[0], words.data());
    ::_exit(127);
}

child_process::child_process(child_process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}

child_process& child_process::operator=(child_process&& other) noexcept
{
    kill();
    id_ = std::exchange(other.id_, -1);
    return *this;
}

child_process::~child_process()
{
    kill();
}

bool child_process::alive()
{
    if (id_ < 0 || ::waitpid(id_, nullptr, WNOHANG) == 0)
        return id_ >= 0;
    id_ = -1;
    return false;
}

void child_process::signal(int number) const
{
    ::kill(id_, number);
}

void child_process::kill() noexcept
{
    if (id_ < 0)
        return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
}

redis_shell::redis_shell(std::uint16_t port) : socket_(connect_to(port))
{
    if (socket_ < 0)
        throw std::runtime_error("a test's Redis server cannot be reached");
}

redis_shell::~redis_shell()
{
    ::close(socket_);
}

char redis_shell::read_char()
{
    if (at_ == buffer_.size()) {
        buffer_.resize(65536);
        const auto got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
        if (got <= 0)
            throw std::runtime_error("a test's Redis server does not answer");
        buffer_.resize(static_cast<std::size_t>(got));
        at_ = 0;
    }
    return buffer_[at_++];
}

std::string redis_shell::read_line()
{
    std::string line;
    for (char c = read_char(); c != '\r'; c = read_char())
        line += c;
    read_char();
    return line;
}

std::string redis_shell::read_reply()
{
    const auto line = read_line();
    const auto rest = line.substr(1);
    if (line[0] == '+' || line[0] == ':')
        return rest;
    if (line[0] == '-')
        return line;
    const int size = std::stoi(rest);
    if (size < 0)
        return "(nil)";
    std::string text;
    if (line[0] == '$') {
        for (int i = 0; i < size; ++i)
            text += read_char();
        read_line();
    } else {
        for (int i = 0; i < size; ++i)
            (text += read_reply()) += '\n';
    }
    return text;
}

std::string redis_shell::operator()(std::initializer_list<std::string_view> words)
{
    std::string command = "*" + std::to_string(words.size()) + "\r\n";
    for (const auto word : words)
        ((command += "$" + std::to_string(word.size()) + "\r\n") += word) += "\r\n";
    write_all(socket_, command);
    return read_reply();
}

redis_server::redis_server(std::vector<std::string> settings)
    : port_(free_port()), folder_(make_folder()), settings_(std::move(settings))
{
    // Somebody else may have taken the port meanwhile.
    for (int i = 0; i < 5; ++i, port_ = free_port()) {
        try {
            start();
            return;
        } catch (const std::runtime_error&) {
            if (i == 4)
                throw;
        }
    }
}

redis_server::~redis_server()
{
    process_.kill();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

void redis_server::start()
{
    std::vector<std::string> command{from_environment("COLOCK_REDIS_SERVER", "redis-server"), "--bind", "127.0.0.1",
        "--port", std::to_string(port_), "--save", "", "--appendonly", "no", "--dir", folder_, "--daemonize", "no"};
    command.insert(command.end(), settings_.begin(), settings_.end());
    process_ = child_process(command, folder_ / "log");
    wait_until(
        [this] {
            if (!process_.alive())
                throw std::runtime_error("redis-server did not start; see scripts/servers.sh");
            const int socket = connect_to(port_);
            if (socket >= 0)
                ::close(socket);
            return socket >= 0;
        },
        "start");
    shell_.reset();
}

std::string redis_server::operator()(std::initializer_list<std::string_view> words)
{
    if (shell_) {
        try {
            return (*shell_)(words);
        } catch (const std::runtime_error&) {
            // A server that changes its role closes its connections.
            shell_.reset();
        }
    }
    shell_ = std::make_unique<redis_shell>(port_);
    return (*shell_)(words);
}

void redis_server::pause()
{
    process_.signal(SIGSTOP);
}

void redis_server::resume()
{
    process_.signal(SIGCONT);
}

void redis_server::kill()
{
    shell_.reset();
    process_.kill();
}

proxy::proxy(std::uint16_t upstream) : control_(free_port()), log_(make_folder())
{
    const auto program = from_environment("COLOCK_TOXIPROXY", cache_folder() / "toxiproxy-2.5.0/server");
    process_ = child_process({program, "-host", "127.0.0.1", "-port", std::to_string(control_)}, log_ / "log");
    wait_until(
        [this] {
            if (!process_.alive())
                throw std::runtime_error("Toxiproxy did not start; see scripts/servers.sh");
            const int socket = connect_to(control_);
            if (socket >= 0)
                ::close(socket);
            return socket >= 0;
        },
        "start");
    port_ = free_port();
    request("POST", "/proxies",
        R"({"name":"p","enabled":true,"listen":"127.0.0.1:)" + std::to_string(port_) + R"(","upstream":"127.0.0.1:)" +
            std::to_string(upstream) + R"("})");
}

proxy::~proxy()
{
    process_.kill();
    std::error_code ignored;
    std::filesystem::remove_all(log_, ignored);
}

void proxy::add(std::string_view name, std::string_view type, std::string_view stream, std::string_view attributes)
{
    std::string body = R"({"name":")";
    ((body += name) += R"(","type":")") += type;
    ((body += R"(","stream":")") += stream) += R"(","attributes":)";
    (body += attributes) += '}';
    request("POST", "/proxies/p/toxics", body);
}

void proxy::remove(std::string_view name)
{
    request("DELETE", "/proxies/p/toxics/" + std::string(name), "");
}

void proxy::enable(bool enabled)
{
    request("POST", "/proxies/p", enabled ? R"({"enabled":true})" : R"({"enabled":false})");
}

void proxy::request(std::string_view method, std::string_view path, std::string_view body)
{
    const int socket = connect_to(control_);
    if (socket < 0)
        throw std::runtime_error("Toxiproxy cannot be reached");
    std::string text(method);
    ((text += ' ') += path) += " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: colock\r\nConnection: close\r\n";
    text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    text += body;
    write_all(socket, text);
    std::string answer(4096, '\0');
    const auto got = ::recv(socket, answer.data(), answer.size(), 0);
    ::close(socket);
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (!answer.starts_with("HTTP/1.1 2"))
        throw std::runtime_error("Toxiproxy refused: " + answer);
}

struct relay::connection
{
    int client;
    int server;
    bool held = false;
    std::string kept{};
    /// The end of what was passed on, in which a word may have begun.
    std::string tail{};
    /// The next thing that the server says is lost.
    bool ends_at_reply = false;
    bool keeps_replies = false;
    std::string replies{};

    void close()
    {
        for (int* each : {&client, &server}) {
            if (*each >= 0)
                ::close(std::exchange(*each, -1));
        }
    }
    /// What has arrived: nothing at the end of the stream, and empty if there is nothing yet.
    static std::optional<std::string> read(int from)
    {
        std::string text(16384, '\0');
        const auto got = ::recv(from, text.data(), text.size(), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return std::nullopt;
        text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return text;
    }
    static void write(int to, std::string_view text)
    {
        if (to >= 0 && !text.empty())
            ::send(to, text.data(), text.size(), MSG_NOSIGNAL);
    }
};

relay::relay(std::uint16_t upstream) : upstream_(upstream), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    auto address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::system_error(errno, std::generic_category(), "relay");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
}

relay::~relay()
{
    stopped_ = true;
    thread_.join();
    ::close(listener_);
    for (const auto& each : connections_)
        each->close();
}

void relay::work()
{
    while (!stopped_) {
        pollfd waiting{listener_, POLLIN, 0};
        if (::poll(&waiting, 1, 1) > 0) {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            const std::lock_guard guard(mutex_);
            if (refuses_)
                ::close(client);
            else
                connections_.push_back(std::make_unique<connection>(connection{client, connect_to(upstream_)}));
        }
        const std::lock_guard guard(mutex_);
        if (silent_)
            continue;
        for (const auto& each : connections_)
            pass(*each);
    }
}

void relay::pass(connection& on)
{
    if (on.client >= 0) {
        const auto said = connection::read(on.client);
        if (!said) {
            ::close(std::exchange(on.client, -1));
            // A connection that is held up lives on at the server's end.
            if (!on.held)
                on.close();
        } else if (on.held) {
            on.kept += *said;
        } else if (!said->empty()) {
            pass_request(on, *said);
        }
    }
    if (on.server < 0)
        return;
    const auto answered = connection::read(on.server);
    if (on.keeps_replies && answered) {
        on.replies += *answered;
    } else if (!answered || (on.ends_at_reply && !answered->empty())) {
        if (on.held)
            ::close(std::exchange(on.client, -1));
        else
            on.close();
    } else {
        connection::write(on.client, *answered);
    }
}

void relay::pass_request(connection& on, const std::string& said)
{
    on.tail += said;
    const bool found = !word_.empty() && on.tail.find(word_) != std::string::npos;
    if (found && answers_left_ > 0) {
        ++cuts_;
        on.tail.clear();
        if (--answers_left_ == 0)
            word_.clear();
        connection::write(on.client, answer_);
        return;
    }
    if (found) {
        word_.clear();
        ++cuts_;
        if (lost_ == loss::request) {
            on.close();
            return;
        }
        on.ends_at_reply = lost_ == loss::reply;
        on.keeps_replies = lost_ == loss::time;
    }
    if (on.tail.size() > 64)
        on.tail.erase(0, on.tail.size() - 64);
    connection::write(on.server, said);
}

void relay::hold()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_)
        each->held = true;
}

bool relay::keeps()
{
    const std::lock_guard guard(mutex_);
    return std::ranges::any_of(connections_, [](const auto& each) { return each->held && !each->kept.empty(); });
}

void relay::hang_up()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (each->held && each->client >= 0)
            ::close(std::exchange(each->client, -1));
    }
}

void relay::deliver()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (!each->held || each->server < 0)
            continue;
        connection::write(each->server, each->kept);
        ::shutdown(each->server, SHUT_WR);
        // The server closes when it has read, and carried out, all of it.
        char rest[4096];
        while (::recv(each->server, rest, sizeof rest, 0) > 0) {
        }
    }
}

void relay::cut_at(std::string_view word, loss what)
{
    const std::lock_guard guard(mutex_);
    word_ = "\r\n" + std::string(word) + "\r\n";
    lost_ = what;
    for (const auto& each : connections_)
        each->tail.clear();
}

void relay::answer_at(std::string_view word, std::string_view reply, int times)
{
    const std::lock_guard guard(mutex_);
    word_ = "\r\n" + std::string(word) + "\r\n";
    answer_ = reply;
    answers_left_ = times;
    for (const auto& each : connections_)
        each->tail.clear();
}

void relay::lead_to(std::uint16_t upstream)
{
    const std::lock_guard guard(mutex_);
    upstream_ = upstream;
}

void relay::deliver_replies()
{
    const std::lock_guard guard(mutex_);
    for (const auto& each : connections_) {
        if (std::exchange(each->keeps_replies, false))
            connection::write(each->client, std::exchange(each->replies, {}));
    }
}

void relay::refuse(bool refuses)
{
    const std::lock_guard guard(mutex_);
    refuses_ = refuses;
    for (const auto& each : connections_) {
        if (refuses)
            each->close();
    }
}

void relay::silence(bool silent)
{
    const std::lock_guard guard(mutex_);
    silent_ = silent;
}

} // namespace colock::testing
