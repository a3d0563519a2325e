// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"

#include <csignal>
#include <stdexcept>
#include <system_error>

#include <sys/socket.h>
#include <unistd.h>

namespace colock::testing {

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

redis_server::redis_server(std::vector<std::string> settings, std::vector<std::string> environment)
    : settings_(std::move(settings)), environment_(std::move(environment))
{
    on_free_port([this](std::uint16_t port) {
        port_ = port;
        start();
    });
}

void redis_server::start(const std::vector<std::string>& more)
{
    std::vector<std::string> command{"env"};
    command.insert(command.end(), environment_.begin(), environment_.end());
    command.insert(command.end(),
        {from_environment("COLOCK_REDIS_SERVER", "redis-server"), "--bind", "127.0.0.1", "--port",
            std::to_string(port_), "--save", "", "--appendonly", "no", "--dir", folder_.path(), "--daemonize", "no"});
    command.insert(command.end(), settings_.begin(), settings_.end());
    command.insert(command.end(), more.begin(), more.end());
    process_ = child_process(command, folder_ / "log");
    wait_until_serving(process_, port_, "redis-server did not start; see scripts/servers.sh");
    shell_.reset();
    is_running_ = true;
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

void redis_server::move_to(std::uint16_t port)
{
    kill();
    port_ = port;
    start();
}

void redis_server::pause()
{
    process_.signal(SIGSTOP);
    is_running_ = false;
}

void redis_server::resume()
{
    process_.signal(SIGCONT);
    is_running_ = true;
}

void redis_server::kill()
{
    shell_.reset();
    process_.kill();
    is_running_ = false;
}

} // namespace colock::testing
