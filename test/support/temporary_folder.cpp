// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace colock::testing {

namespace {

std::filesystem::path make_folder()
{
    std::string pattern = std::filesystem::temp_directory_path() / "colock-test-XXXXXX";
    if (!::mkdtemp(pattern.data()))
        throw std::system_error(errno, std::generic_category(), "mkdtemp");
    return pattern;
}

} // namespace

temporary_folder::temporary_folder() : path_(make_folder()) {}

temporary_folder::~temporary_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

} // namespace colock::testing
