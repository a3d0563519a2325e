// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fixture.hpp"

#include <colock/redis/adapter.hpp>

/// A fixture with its own key prefix.
struct redis_fixture : served_fixture
{
    const std::string url = colock::testing::from_environment("COLOCK_TEST_REDIS", "");
    colock::locker locker{make()};
    colock::locker other{make()};

    [[nodiscard]] std::shared_ptr<colock::adapter> make()
    {
        return colock::redis::make_adapter(io.get_executor(), {.url = url, .prefix = unique_name + ":"});
    }
};
