// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "pool_fixture.hpp"
#include "server.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace colock::testing {

/// A server that requires authentication, with some users.
struct guarded_server
{
    guarded_server()
    {
        pool_fixture open(running.port());
        create(open, "admin", "me", "secret, =", R"(["SCRAM-SHA-1", "SCRAM-SHA-256"])");
        create(open, "admin", "sha1_user", "secret", R"(["SCRAM-SHA-1"])");
        create(open, "other_db", "other_db_user", "secret", R"(["SCRAM-SHA-256"])");
        create(open, "admin", "accented",
            "s\xc3\xa9"
            "cret",
            R"(["SCRAM-SHA-256"])");
        running.kill();
        running.start({"--auth"});
    }

    static void create(pool_fixture& through, const char* source, const std::string& user, const std::string& password,
        const char* mechanisms)
    {
        const auto asked = through.ask_in(
            source, R"({"createUser": ")" + user + R"(", "pwd": ")" + password +
                        R"(", "roles": [{"role": "root", "db": "admin"}], "mechanisms": )" + mechanisms + "}");
        const auto& got = through.wait_for(asked);
        BOOST_TEST_REQUIRE(got.outcome == kind::done, got.text);
    }

    // The users must survive the end of the process.
    mongodb_server running{{"--sync-on-commit"}};
};

} // namespace colock::testing
