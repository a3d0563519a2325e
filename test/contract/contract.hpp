// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "../support/driver.hpp"
#include "../support/print.hpp"

#include <colock/locker.hpp>
#include <colock/observer.hpp>
#include <colock/testing/adapter_contract.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace colock::contract {

using namespace std::chrono_literals;
using testing::driver;
using testing::plain_claim;
using testing::plain_claim_ptr;
using testing::run_coro;
using testing::running;

/// The fixture of a test case: the operations of a backend, and time.
class fixture : public driver
{
public:
    fixture(asio::io_context& io, environment& backend_environment);
    fixture(asio::io_context& io, environment& backend_environment, std::shared_ptr<adapter> tested);

    [[nodiscard]] colock::capabilities capabilities() const noexcept { return backend().traits().capabilities; }
    [[nodiscard]] std::chrono::milliseconds short_ttl() const { return environment_.short_ttl(); }
    void pass_time(lease_clock::duration span) { environment_.pass_time(span); }
    /// Returns a driver with another adapter, which the backend sees as another process.
    [[nodiscard]] driver another() { return {io(), watch_events(environment_.make())}; }

    [[nodiscard]] locker make_locker(locker_options options = {}) const;
    [[nodiscard]] locker make_other_locker(locker_options options = {});

    /// Called at the end of every case. Checks that no lock is left behind, after background work has ended.
    void check_nothing_left();

protected:
    /// Checks the order of the events that the adapter reports. Returns the adapter.
    std::shared_ptr<adapter> watch_events(std::shared_ptr<adapter> watched);

private:
    environment& environment_;
    std::vector<std::shared_ptr<observer>> event_checks_;
};

using keys = std::multiset<std::string>;
[[nodiscard]] keys keys_of(const std::vector<lock_status>& statuses);

#define CHECK_KEYS(statuses, ...) BOOST_TEST(keys_of(statuses) == keys(__VA_ARGS__), boost::test_tools::per_element())

/// A test case. It is skipped if the backend lacks one of the capabilities in `needs`.
struct contract_case
{
    using need = bool capabilities::*;
    const char* name;
    const char* file;
    std::size_t line;
    std::vector<need> needs;
    void (*body)(fixture&);
};
using cases = std::vector<contract_case>;

/// Adds a suite of `contents`. `run` executes a case. A case runs if `supported` has what it needs and `skip_reason`
/// returns an empty string.
void add_suite(std::string name, const capabilities& supported, std::function<std::string()> skip_reason,
    const cases& contents, std::function<void(const contract_case&)> run);
/// Checks that the capabilities of a backend are those of its registration.
void check_declared_capabilities(const std::string& name, const capabilities& declared, const capabilities& supported);

/// Cases that use the adapter only.
[[nodiscard]] cases& adapter_cases();
/// Cases that use a locker.
[[nodiscard]] cases& locker_cases();

/// COLOCK_CONTRACT_CASE(adapter, name, needs...) { body; `env` is the fixture }
#define COLOCK_CONTRACT_CASE(level, case_name, ...)                                                                    \
    static void case_name(fixture& env);                                                                               \
    [[maybe_unused]] static const auto& case_name##_added =                                                            \
        level##_cases().emplace_back(contract_case{#case_name, __FILE__, __LINE__, {__VA_ARGS__}, &case_name});        \
    static void case_name([[maybe_unused]] fixture& env)

} // namespace colock::contract
