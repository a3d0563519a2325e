// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fixture.hpp"

#include <colock/mongo/adapter.hpp>

/// A fixture with its own collection.
struct mongodb_fixture : served_fixture
{
    const std::string url = colock::testing::from_environment("COLOCK_TEST_MONGODB", "") + "/?directConnection=true";
    colock::locker locker{make()};
    colock::locker other{make()};

    [[nodiscard]] std::shared_ptr<colock::adapter> make()
    {
        return colock::mongo::make_adapter(io.get_executor(), {.url = url, .collection = unique_name});
    }
};
