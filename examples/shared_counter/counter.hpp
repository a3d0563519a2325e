// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

/// A number in a file. Nothing prevents two processes from reading and writing it at the same time.
class counter
{
public:
    explicit counter(std::filesystem::path file) : file_(std::move(file)) {}

    long read() const
    {
        long value = 0;
        std::ifstream(file_) >> value;
        return value;
    }
    void write(long value) const
    {
        // A process that is killed here leaves the old number or the new one, never a part of a number.
        const std::string next = file_.string() + '.' + std::to_string(::getpid());
        if (!(std::ofstream(next) << value << std::flush))
            throw std::runtime_error("cannot write " + next);
        std::filesystem::rename(next, file_);
    }

private:
    std::filesystem::path file_;
};
