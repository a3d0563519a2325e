// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fixture.hpp"

#include <colock/zookeeper/adapter.hpp>

/// A fixture with its own root node.
struct zookeeper_fixture : served_fixture
{
    const std::string url = colock::testing::from_environment("COLOCK_TEST_ZOOKEEPER", "") + "/" + unique_name;
    colock::locker locker{make()};
    colock::locker other{make()};

    [[nodiscard]] std::shared_ptr<colock::adapter> make()
    {
        return colock::zookeeper::make_adapter(io.get_executor(), {.url = url});
    }
};
