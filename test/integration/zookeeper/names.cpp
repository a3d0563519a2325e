// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/late_names.hpp"

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
    by.connect();
}

BOOST_AUTO_TEST_CASE(run_returns_after_a_shutdown_while_a_name_is_looked_up)
{
    const late_names late;
    asio::io_context io;
    {
        const locker locks(zookeeper::make_adapter(io.get_executor(), {.url = "zookeeper://late.test:2181"}));
        const auto waiting = start(io, locks.acquire("k"));
        late_names::wait_for_question(io);
        run_coro(io, locks.shutdown(1s));
    }
    io.restart();
    io.run();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
