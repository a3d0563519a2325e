// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/ticket_file.hpp"

#include "command/exit_code.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace command {

ticket_file::ticket_file(std::string path) : path_(std::move(path))
{
    if (path_.empty())
        throw usage_error("--ticket FILE is missing");
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor_ == -1)
        throw usage_error("--ticket '" + path_ + "' cannot be created: " + std::strerror(errno));
}

ticket_file::~ticket_file()
{
    ::close(descriptor_);
    if (!is_written_)
        ::unlink(path_.c_str());
}

void ticket_file::write(const std::string& ticket)
{
    const std::string line = ticket + '\n';
    if (::write(descriptor_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
        ::fsync(descriptor_) != 0)
        throw usage_error("--ticket '" + path_ + "' cannot be written: " + std::strerror(errno));
    is_written_ = true;
}

std::string read_ticket(const std::string& path)
{
    if (path.empty())
        throw usage_error("--ticket FILE is missing");
    std::ifstream in(path);
    std::string ticket;
    if (!std::getline(in, ticket) || ticket.empty())
        throw usage_error("--ticket '" + path + "' cannot be read, or is empty");
    return ticket;
}

} // namespace command
