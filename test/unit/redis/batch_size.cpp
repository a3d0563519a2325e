// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/batch_size.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>

namespace colock::inline v0::redis::detail {
BOOST_AUTO_TEST_SUITE(redis_batch_size)

BOOST_AUTO_TEST_CASE(size_grows_with_the_load_and_shrinks_slowly)
{
    batch_size size;
    BOOST_TEST(size.current() == 2U);
    BOOST_TEST(size.next(1, 0) == 2U);
    // A burst is sent in large batches from the first one on.
    for (std::size_t waiting = 1000, in_flight = 0; waiting > 0;) {
        const auto next = std::min(size.next(waiting, in_flight), waiting);
        BOOST_TEST((next == batch_size::max || next == waiting));
        waiting -= next;
        in_flight += next;
    }
    BOOST_TEST(size.current() == batch_size::max);
    static_cast<void>(size.next(1, 0));
    BOOST_TEST(size.current() > 2U);
    for (int i = 0; i < 1000; ++i)
        static_cast<void>(size.next(1, 0));
    BOOST_TEST(size.current() == 2U);
}

BOOST_AUTO_TEST_CASE(operations_in_flight_count_as_load)
{
    batch_size size;
    static_cast<void>(size.next(2, 38));
    BOOST_TEST(size.current() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
