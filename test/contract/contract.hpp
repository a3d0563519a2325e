// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "../support/driver.hpp"
#include "../support/print.hpp"

#include <colock/locker.hpp>
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

/// What a test case works with: the backend's operations, and time.
class subject : public driver
{
public:
    subject(asio::io_context& io, environment& surroundings);
    subject(asio::io_context& io, environment& surroundings, std::shared_ptr<adapter> tested);

    [[nodiscard]] colock::capabilities able() const noexcept { return backend().capabilities(); }
    [[nodiscard]] std::chrono::milliseconds short_ttl() const { return surroundings_.short_ttl(); }
    void pass_time(lease_clock::duration span) { surroundings_.pass_time(span); }
    /// Another process, as far as the backend is concerned.
    [[nodiscard]] driver another() { return {io(), surroundings_.make()}; }

    [[nodiscard]] locker make_locker(locker_options options = {}) const;
    [[nodiscard]] locker make_other_locker(locker_options options = {});

    /// Every case ends with this: no lock may be left behind, background work included.
    void check_nothing_left();

private:
    environment& surroundings_;
};

using keys = std::multiset<std::string>;
[[nodiscard]] keys keys_of(const std::vector<lock_status>& statuses);

#define CHECK_KEYS(statuses, ...) BOOST_TEST(keys_of(statuses) == keys(__VA_ARGS__), boost::test_tools::per_element())

/// One test case; needs are capabilities without which it is skipped.
struct contract_case
{
    using need = bool capabilities::*;
    const char* name;
    const char* file;
    std::size_t line;
    std::vector<need> needs;
    void (*body)(subject&);
};
using cases = std::vector<contract_case>;

/// A suite of its own, whose cases `run` carries out one by one: `able` and `missing` say which.
void add_suite(std::string name, const capabilities& able, std::function<std::string()> missing, const cases& contents,
    std::function<void(const contract_case&)> run);
/// That a backend is able to what its registration says.
void check_described(const std::string& name, const capabilities& described, const capabilities& able);

/// Of the adapter alone.
[[nodiscard]] cases& adapter_cases();
/// Through a locker.
[[nodiscard]] cases& locker_cases();

/// COLOCK_CONTRACT_CASE(adapter, name, needs...) { body, with the subject as `on` }
#define COLOCK_CONTRACT_CASE(level, case_name, ...)                                                                    \
    static void case_name(subject& on);                                                                                \
    [[maybe_unused]] static const auto& case_name##_added =                                                            \
        level##_cases().emplace_back(contract_case{#case_name, __FILE__, __LINE__, {__VA_ARGS__}, &case_name});        \
    static void case_name([[maybe_unused]] subject& on)

} // namespace colock::contract
