// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace colock::contract {

cases& remote_cases()
{
    static cases all;
    return all;
}

cases& replicated_cases()
{
    static cases all;
    return all;
}

std::ostream& operator<<(std::ostream& out, lost_part what)
{
    return out << (what == lost_part::request ? "request" : "reply");
}

std::size_t event_recorder::count(std::string_view what) const
{
    return static_cast<std::size_t>(std::ranges::count(events, what));
}

remote_fixture::remote_fixture(asio::io_context& io, remote_environment& backend_environment)
    : waiting_fixture(io, backend_environment, backend_environment.make_linked(backend_environment.short_ttl() * 14)),
      environment_(backend_environment), direct_driver_(another())
{
}

driver remote_fixture::make_short_timeout_driver()
{
    return {io(), others_.emplace_back(watch_events(environment_.make_linked(short_timeout())))};
}

locker remote_fixture::make_linked_locker(locker_options options)
{
    options.operation_timeout = long_timeout();
    return locker(watch_events(environment_.make_linked(long_timeout())), std::move(options));
}

locker remote_fixture::make_short_timeout_locker(locker_options options)
{
    options.operation_timeout = short_timeout();
    return locker(watch_events(environment_.make_linked(short_timeout())), std::move(options));
}

locker remote_fixture::make_locker_that_times_out_first()
{
    return locker(watch_events(environment_.make_linked(long_timeout())), {.operation_timeout = short_timeout()});
}

locker remote_fixture::make_direct_locker()
{
    auto options = quick_retry();
    options.operation_timeout = long_timeout();
    return make_other_locker(std::move(options));
}

void waiting_fixture::until(const std::function<bool()>& reached, where at)
{
    testing::run_ready(io(), at);
    const auto end = lease_clock::now() + short_ttl() * 30;
    bool is_reached = reached();
    while (!is_reached && lease_clock::now() < end) {
        pass_time(short_ttl() / 100);
        is_reached = reached();
    }
    BOOST_TEST_CONTEXT("called from " << at.file_name() << ":" << at.line())
    {
        BOOST_TEST_REQUIRE(is_reached);
    }
}

void remote_fixture::warm_up()
{
    const auto warm = exclusive("warm");
    grant(warm);
    release_held(warm);
}

void remote_fixture::check_stored(std::size_t expected, where at)
{
    auto stored = environment_.stored();
    // Waits only for entries to appear, never for entries to disappear, because a lease may end by itself.
    const auto end = std::chrono::steady_clock::now() + long_timeout();
    while (stored.size() < expected && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        stored = environment_.stored();
    }
    BOOST_TEST_CONTEXT("called from " << at.file_name() << ":" << at.line())
    {
        BOOST_TEST(stored.size() == expected, stored.size() << " stored: " << (stored.empty() ? "" : stored.front()));
    }
}

bool remote_fixture::abandon_once(const claim_ptr& claim)
{
    return run(backend().release(claim, release_guarantee::settled)).status != release_status::failed;
}

void remote_fixture::settle(const claim_ptr& claim, where at)
{
    until([&] { return abandon_once(claim); }, at);
}

bool waiting_fixture::out_of_work()
{
    io().restart();
    io().poll();
    const bool none_left = io().stopped();
    io().restart();
    return none_left;
}

void remote_fixture::check_end()
{
    for (const auto& each : all_faults)
        each.set(environment_, false);
    until([&] { return environment_.stored().empty(); });
    others_.push_back(shared_backend());
    others_.push_back(direct_driver_.shared_backend());
    for (const auto& each : others_)
        run(each->close(long_timeout()));
    until([&] { return out_of_work(); });
}

replicated_fixture::replicated_fixture(asio::io_context& io, replicated_environment& backend_environment)
    : waiting_fixture(io, backend_environment, backend_environment.make_linked(backend_environment.short_ttl())),
      environment_(backend_environment), direct_driver_(another())
{
}

driver replicated_fixture::make_linked_driver()
{
    return {io(), others_.emplace_back(environment_.make_linked(timeout()))};
}

locker replicated_fixture::make_linked_locker()
{
    return locker(others_.emplace_back(environment_.make_linked(timeout())),
        {.retry = retry_policy::fixed(20ms), .operation_timeout = timeout()});
}

void replicated_fixture::check_end()
{
    others_.push_back(shared_backend());
    others_.push_back(direct_driver_.shared_backend());
    for (const auto& each : others_)
        run(each->close(timeout() * 10));
    until([&] { return out_of_work(); });
}

namespace {

template <class Fixture>
void run(const auto& tested, const contract_case& which)
{
    asio::io_context io;
    const auto backend_environment = tested.make_environment(io);
    Fixture env(io, *backend_environment);
    check_declared_capabilities(tested.name, tested.capabilities, env.capabilities());
    which.body(env);
    env.check_end();
}

} // namespace

remote_registration::remote_registration(remote_backend tested)
{
    add_suite(tested.name + "_remote", tested.capabilities, tested.skip_reason, remote_cases(),
        [tested](const contract_case& which) { run<remote_fixture>(tested, which); });
}

replicated_registration::replicated_registration(replicated_backend tested)
{
    add_suite(tested.name + "_replicated", tested.capabilities, tested.skip_reason, replicated_cases(),
        [tested](const contract_case& which) { run<replicated_fixture>(tested, which); });
}

} // namespace colock::contract
