// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "name_service.hpp"
#include "run.hpp"

#include <colock/locker.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace colock::testing {

/// Checks that `run()` returns after a shutdown while a name is being looked up.
/// \param make_adapter makes an adapter for a server at "late.test"
inline void check_shutdown_during_lookup(
    const std::function<std::shared_ptr<adapter>(const asio::any_io_executor&)>& make_adapter)
{
    const late_names late;
    asio::io_context io;
    {
        const locker locks(make_adapter(io.get_executor()));
        const auto waiting = start(io, locks.acquire("k"));
        late_names::wait_for_question(io);
        run_coro(io, locks.shutdown(std::chrono::seconds(1)));
    }
    io.restart();
    io.run_for(std::chrono::seconds(30));
    BOOST_TEST(io.stopped());
}

} // namespace colock::testing
