// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/toxiproxy.hpp"

#include "support/sockets.hpp"

#include <stdexcept>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace colock::testing {

toxiproxy::toxiproxy(std::uint16_t upstream) : control_(free_port())
{
    const auto program = from_environment("COLOCK_TOXIPROXY", cache_folder() / "toxiproxy-2.5.0/server");
    process_ = child_process({program, "-host", "127.0.0.1", "-port", std::to_string(control_)}, folder_ / "log");
    wait_until_serving(process_, control_, "Toxiproxy did not start; see scripts/servers.sh");
    port_ = free_port();
    request("POST", "/proxies",
        R"({"name":"p","enabled":true,"listen":"127.0.0.1:)" + std::to_string(port_) + R"(","upstream":"127.0.0.1:)" +
            std::to_string(upstream) + R"("})");
}

void toxiproxy::add(std::string_view name, std::string_view type, std::string_view stream, std::string_view attributes)
{
    std::string body = R"({"name":")";
    ((body += name) += R"(","type":")") += type;
    ((body += R"(","stream":")") += stream) += R"(","attributes":)";
    (body += attributes) += '}';
    request("POST", "/proxies/p/toxics", body);
}

void toxiproxy::remove(std::string_view name)
{
    request("DELETE", "/proxies/p/toxics/" + std::string(name), "");
}

void toxiproxy::enable(bool enabled)
{
    request("POST", "/proxies/p", enabled ? R"({"enabled":true})" : R"({"enabled":false})");
}

void toxiproxy::request(std::string_view method, std::string_view path, std::string_view body)
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

} // namespace colock::testing
