// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guarded_server.hpp"
#include "mongo_fixture.hpp"
#include "support/faulty_proxy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

/// Ttl of the leases, long enough for sanitizers and a busy machine. On an idle machine, leases of 500 ms survive.
constexpr auto lease_time = 6s;

/// Returns the error NotWritablePrimary as a message of the protocol.
std::string not_primary(std::string_view request)
{
    const auto body = document::from_json(R"({"ok": 0, "code": 10107, "errmsg": "not primary"})");
    const auto to_bytes = [](std::int32_t number) {
        std::string made;
        for (int shift = 0; shift < 32; shift += 8)
            made += static_cast<char>(static_cast<std::uint32_t>(number) >> shift & 0xff);
        return made;
    };
    constexpr std::int32_t op_msg = 2013;
    const auto size = static_cast<std::int32_t>(body.get()->len);
    const std::string id_of_request(request.substr(4, 4));
    return to_bytes(21 + size) + to_bytes(1) + id_of_request + to_bytes(op_msg) + std::string(5, '\0') +
           std::string(reinterpret_cast<const char*>(bson_get_data(body.get())), body.get()->len);
}

/// Two lockers on one context: `ours` has eight busy connections that are authenticated, and `theirs` uses another
/// server.
struct busy_fixture : mongo_fixture
{
    busy_fixture()
    {
        for (int i = 0; i < 8; ++i)
            busy.push_back(start(io, keep_busy("busy " + std::to_string(i))));
        run_for(1s);
    }

    asio::awaitable<void> keep_busy(std::string key)
    {
        auto kept = co_await ours.acquire(key, {.ttl = 1h});
        while (!stops) {
            try {
                co_await kept.extend(1h);
                ++extensions;
            } catch (const error&) {
                // The connection was cut.
            }
        }
    }
    std::vector<lock> take_leases(std::chrono::milliseconds lasting)
    {
        std::vector<lock> all;
        for (int i = 0; i < 4; ++i) {
            for (const auto& each : {ours, theirs})
                all.push_back(
                    run(each.acquire("lease " + std::to_string(i), {.ttl = lasting, .renewal = renewal::automatic})));
        }
        return all;
    }
    void run_for(lease_clock::duration time)
    {
        io.restart();
        io.run_for(time);
    }
    void check_no_loss(std::vector<lock>& leases, int before)
    {
        run_for(2s);
        BOOST_TEST(extensions > before);
        BOOST_TEST(std::ranges::count_if(leases, &lock::held) == 8);
    }
    void stop()
    {
        stops = true;
        for (auto& each : busy)
            each.get(io);
    }

    const guarded_server guarded{};
    faulty_proxy link{guarded.running.port()};
    const locker ours = add(options("mongodb://me:secret%2C%20%3D@127.0.0.1:" + std::to_string(link.port())));
    const locker theirs = add();
    std::vector<running<void>> busy;
    bool stops = false;
    int extensions = 0;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_fail_over_logins, busy_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(renewed_lease_survives_the_loss_of_eight_connections)
{
    auto leases = take_leases(lease_time);
    for (int i = 0; i < 3; ++i) {
        link.refuse(true);
        link.refuse(false);
        check_no_loss(leases, extensions);
    }
    stop();
}

BOOST_AUTO_TEST_CASE(renewed_lease_survives_a_fail_over)
{
    auto leases = take_leases(lease_time);
    for (int i = 0; i < 3; ++i) {
        const auto reconnections_before = event_log->reconnections;
        link.answer_at_bytes("findAndModify", not_primary);
        check_no_loss(leases, extensions);
        BOOST_TEST(event_log->reconnections > reconnections_before);
    }
    stop();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
