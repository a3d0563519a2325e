// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/exit_code.hpp"
#include "command/help.hpp"
#include "command/subcommands.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

int dispatch(std::vector<std::string> arguments)
{
    if (arguments.empty())
        throw command::usage_error("no subcommand is given; 'colock --help' lists them");
    const std::string name = arguments.front();
    if (name == "--help" || name == "-h") {
        command::print_help(std::cout);
        return command::success;
    }
    if (name == "--version") {
        command::print_version(std::cout);
        return command::success;
    }
    if (name == "--man-page") { // for the build
        command::print_manual_page(std::cout);
        return command::success;
    }
    const auto subcommands = command::all_subcommands();
    const auto selected = std::ranges::find(subcommands, name, &command::subcommand::name);
    if (selected == subcommands.end())
        throw command::usage_error("'" + name + "' is not a subcommand; 'colock --help' lists them");
    arguments.erase(arguments.begin());
    const command::invocation call = command::parse(*selected, std::move(arguments));
    if (call.flag("help")) {
        command::print_help(std::cout, *selected);
        return command::success;
    }
    return selected->execute(call);
}

} // namespace

int main(int count, char** words)
{
    try {
        return dispatch({words + 1, words + count});
    } catch (...) {
        return command::report_current_exception();
    }
}
