// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/command.hpp"

#include "mongo/hello.hpp"

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

command::command(std::string database, document asked) : database_(std::move(database)), asked_(std::move(asked)) {}

command::command(dated_hello) : database_("admin"), asked_(hello::question()), times_(2) {}

void command::perform(mongoc_client_t& driver) noexcept
{
    for (int n = 0; n < times_; ++n) {
        const auto now = lease_clock::now();
        got_ = ask(driver, database_, asked_);
        got_.asked = now;
        if (got_.what != answer::kind::done)
            return;
    }
}

} // namespace colock::mongo::detail
