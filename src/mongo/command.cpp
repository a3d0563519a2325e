// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/command.hpp"

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

command::command(std::string database, document asked) : database_(std::move(database)), asked_(std::move(asked)) {}

void command::perform(mongoc_client_t& driver) noexcept
{
    got_ = ask(driver, database_, asked_);
}

} // namespace colock::mongo::detail
