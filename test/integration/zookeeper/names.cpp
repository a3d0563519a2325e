// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/name_service.hpp"
#include "support/shutdown_during_lookup.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(zookeeper_names)

BOOST_AUTO_TEST_CASE(late_name_does_not_delay_the_use_of_the_other_hosts)
{
    const late_names late;
    client by(std::vector<endpoint>{{"late.test", "2181"}, {"127.0.0.1", std::to_string(shared_zookeeper())}}, 6s);
    BOOST_TEST(by.connect().zk_session->connected());
}

BOOST_AUTO_TEST_CASE(run_returns_after_a_shutdown_while_a_name_is_looked_up)
{
    check_shutdown_during_lookup([](const asio::any_io_executor& executor) {
        return zookeeper::make_adapter(executor, {.url = "zookeeper://late.test:2181"});
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
