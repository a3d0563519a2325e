// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/// A resource that stores the highest fence it has seen, and refuses writes with a lower one. A database can do this
/// with a column for the fence and a condition in the update.
class report
{
public:
    explicit report(std::filesystem::path file) : file_(std::move(file)) {}

    bool write(const std::string& text, std::uint64_t fence) const
    {
        const transaction alone(file_);
        std::uint64_t highest = 0;
        std::ifstream(file_) >> highest;
        if (fence < highest)
            return false;
        std::ofstream(file_) << fence << ' ' << text << '\n';
        return true;
    }
    std::string text() const
    {
        std::uint64_t fence = 0;
        std::string line;
        std::getline(std::ifstream(file_) >> fence >> std::ws, line);
        return line;
    }

private:
    class transaction
    {
    public:
        explicit transaction(const std::filesystem::path& file) : file_(::open(file.c_str(), O_RDWR | O_CREAT, 0600))
        {
            if (file_ < 0 || ::flock(file_, LOCK_EX) != 0)
                throw std::system_error(errno, std::generic_category(), file);
        }
        ~transaction() { ::close(file_); }
        transaction(const transaction&) = delete;
        transaction& operator=(const transaction&) = delete;

    private:
        int file_;
    };

    std::filesystem::path file_;
};
