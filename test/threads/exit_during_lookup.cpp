// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Returns from `main` while a thread waits for the name service. The test fails if the program does not end.

#include "net/name_lookup.hpp"
#include "support/name_service.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

int main()
{
    // Not destroyed: the name service never answers.
    static const auto& late = *new colock::testing::late_names;
    boost::asio::io_context io;
    const auto lookup = std::make_shared<colock::remote::name_lookup>(io.get_executor());
    lookup->start("late.test", [](const colock::remote::name_result&) {});
    late.wait_for_question(io);
}
