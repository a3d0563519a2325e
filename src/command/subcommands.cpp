// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/subcommands.hpp"

#include <array>
#include <string>

namespace command {

namespace {

using program_options::bool_switch;
using program_options::value;

} // namespace

void add_common_options(program_options::options_description& options)
{
    options.add_options()                                                                 //
        ("backend", value<std::string>()->value_name("URL"),                              //
            "server, such as redis://host or zookeeper://host; default: COLOCK_BACKEND")  //
        ("verbose,v", bool_switch(), "log the events of locks and connections to stderr") //
        ("quiet,q", bool_switch(), "write only errors to stderr")                         //
        ("help,h", bool_switch(), "print this text");
}

std::span<const subcommand> all_subcommands()
{
    static constexpr std::array<subcommand, 0> subcommands{};
    return subcommands;
}

} // namespace command
