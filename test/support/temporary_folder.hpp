// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <filesystem>
#include <string_view>

namespace colock::testing {

/// A new folder that the destructor removes. A program that writes to the folder has to end before that.
class temporary_folder
{
public:
    temporary_folder();
    ~temporary_folder();
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
    const std::filesystem::path path_;
};

} // namespace colock::testing
