// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/lease_plan.hpp"

#include <colock/clock.hpp>
#include <colock/lost_reason.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::local_expiry;

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE(hex_is_32_lower_case_digits_of_the_bytes)
{
    const token known({0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xab, 0xff, 0, 1, 2, 3, 4, 5, 6, 0xfe});
    BOOST_TEST(known.hex() == "00010f107f80abff000102030405"
                              "06fe");
    const auto hex = token::generate().hex();
    BOOST_TEST(hex.size() == 32U);
    BOOST_TEST(hex.find_first_not_of("0123456789abcdef") == std::string::npos);
    char written[33] = "________________________________";
    known.hex_to(written);
    BOOST_TEST(std::string(written) == known.hex());
}

BOOST_AUTO_TEST_CASE(generated_tokens_are_not_empty_and_unique)
{
    BOOST_TEST(token().empty());
    std::set<std::string> seen;
    constexpr std::size_t each = 10'000;
    std::vector<std::string> elsewhere;
    std::thread other([&] {
        for (std::size_t n = 0; n < each; ++n)
            elsewhere.push_back(token::generate().hex());
    });
    for (std::size_t n = 0; n < each; ++n) {
        const auto made = token::generate();
        BOOST_TEST_REQUIRE(!made.empty());
        seen.insert(made.hex());
    }
    other.join();
    seen.insert(elsewhere.begin(), elsewhere.end());
    BOOST_TEST(seen.size() == 2 * each);
}

BOOST_AUTO_TEST_CASE(every_bit_varies)
{
    token::bytes_type ones{}, zeros{};
    for (int n = 0; n < 256; ++n) {
        const auto made = token::generate();
        for (std::size_t byte = 0; byte < token::size; ++byte) {
            ones[byte] = static_cast<unsigned char>(ones[byte] | made.bytes()[byte]);
            zeros[byte] = static_cast<unsigned char>(zeros[byte] | static_cast<unsigned char>(~made.bytes()[byte]));
        }
    }
    for (std::size_t byte = 0; byte < token::size; ++byte) {
        BOOST_TEST(ones[byte] == 0xff);
        BOOST_TEST(zeros[byte] == 0xff);
    }
}

BOOST_AUTO_TEST_CASE(child_process_generates_other_tokens_than_its_parent)
{
    // Fills the buffer, which the child must not use.
    static_cast<void>(token::generate());
    constexpr std::size_t count = 100;
    int channel[2];
    BOOST_TEST_REQUIRE(::pipe(channel) == 0);
    const auto child = ::fork();
    BOOST_TEST_REQUIRE(child >= 0);
    if (child == 0) {
        bool sent = true;
        for (std::size_t n = 0; n < count; ++n) {
            const auto made = token::generate();
            sent = sent && ::write(channel[1], made.bytes().data(), token::size) == ssize_t{token::size};
        }
        ::_exit(sent ? 0 : 1);
    }
    ::close(channel[1]);
    std::set<token::bytes_type> seen;
    token::bytes_type received;
    while (::read(channel[0], received.data(), received.size()) == ssize_t{token::size})
        seen.insert(received);
    ::close(channel[0]);
    int status = 1;
    ::waitpid(child, &status, 0);
    BOOST_TEST(status == 0);
    BOOST_TEST(seen.size() == count);
    for (std::size_t n = 0; n < count; ++n)
        BOOST_TEST(seen.insert(token::generate().bytes()).second);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(clocks)

namespace {

using duration = lease_clock::duration;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};

} // namespace

BOOST_AUTO_TEST_CASE(saturating_add_never_overflows)
{
    BOOST_TEST((saturating_add(start, 5s) == start + 5s));
    BOOST_TEST((saturating_add(start, 0s) == start));
    BOOST_TEST((saturating_add(start, -5s) == start));
    BOOST_TEST((saturating_add(start, duration::min()) == start));
    BOOST_TEST((saturating_add(start, duration::max()) == time_point::max()));
    BOOST_TEST((saturating_add(time_point::max(), 1ns) == time_point::max()));
    BOOST_TEST((saturating_add(time_point::max() - 1ns, 1ns) == time_point::max()));
}

BOOST_AUTO_TEST_CASE(no_single_wait_is_longer_than_five_seconds)
{
    using traits = asio::wait_traits<lease_clock>;
    BOOST_TEST((traits::to_wait_duration(duration(1s)) == 1s));
    BOOST_TEST((traits::to_wait_duration(duration(1h)) == 5s));
    BOOST_TEST((traits::to_wait_duration(time_point::max()) == 5s));
    BOOST_TEST((traits::to_wait_duration(time_point::min()) == 0s));
    BOOST_TEST((traits::to_wait_duration(lease_clock::now() - 1h) == 0s));
    const auto soon = traits::to_wait_duration(lease_clock::now() + 3s);
    BOOST_TEST((soon > 1s && soon <= 3s));
}

BOOST_AUTO_TEST_CASE(the_clock_only_goes_forward)
{
    auto last = lease_clock::now();
    for (int n = 0; n < 1000; ++n) {
        const auto next = lease_clock::now();
        BOOST_TEST_REQUIRE((next >= last));
        last = next;
    }
    static_assert(lease_clock::is_steady);
}

BOOST_AUTO_TEST_CASE(local_expiry_is_never_later_than_that_of_the_backend)
{
    BOOST_TEST((local_expiry({start, 30s}) == start + 30s - 300ms - 2ms));
    BOOST_TEST((local_expiry({start, 100ms}) == start + 97ms));
    BOOST_TEST((local_expiry({start, 1h}) == start + 1h - 36s - 2ms));
    BOOST_TEST((local_expiry({start, 0ms}) == time_point::max()));
    BOOST_TEST((local_expiry({time_point::max() - 1s, 1h}) == time_point::max()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(filters)

BOOST_AUTO_TEST_CASE(each_field_decides_by_itself)
{
    const auto noon = std::chrono::system_clock::time_point(std::chrono::hours(12));
    lock_status status;
    status.key = "cart:7";
    status.group = "g";
    status.mode = lock_mode::shared;
    status.owner = "me";
    status.created = noon;
    status.remaining = 10s;
    lock_status timeless = status;
    timeless.created.reset();
    timeless.remaining.reset();

    BOOST_TEST(filter{}.matches(status));
    BOOST_TEST(filter{}.matches(timeless));

    const struct
    {
        const char* what;
        filter which;
        bool matches;
        bool matches_timeless;
    } table[] = {
        {"key", {.key = "cart:7"}, true, true},
        {"another key", {.key = "cart:"}, false, false},
        {"prefix", {.key_prefix = "cart:"}, true, true},
        {"empty prefix", {.key_prefix = ""}, true, true},
        {"another prefix", {.key_prefix = "art"}, false, false},
        {"group", {.group = "g"}, true, true},
        {"no group", {.group = ""}, false, false},
        {"owner", {.owner = "me"}, true, true},
        {"another owner", {.owner = "m"}, false, false},
        {"mode", {.mode = lock_mode::shared}, true, true},
        {"another mode", {.mode = lock_mode::exclusive}, false, false},
        {"created before a later time", {.created_before = noon + 1s}, true, false},
        {"created before that time", {.created_before = noon}, false, false},
        {"created at that time or later", {.created_after = noon}, true, false},
        {"created after a later time", {.created_after = noon + 1s}, false, false},
        {"upper limit above the remaining time", {.remaining_below = 10001ms}, true, false},
        {"upper limit equal to the remaining time", {.remaining_below = 10s}, false, false},
        {"lower limit equal to the remaining time", {.remaining_at_least = 10s}, true, true},
        {"lower limit above the remaining time", {.remaining_at_least = 10001ms}, false, true},
        {"all fields match",
            {.key = "cart:7", .key_prefix = "c", .group = "g", .owner = "me", .mode = lock_mode::shared}, true, true},
        {"all fields but one match", {.key = "cart:7", .key_prefix = "c", .group = "g", .owner = "you"}, false, false},
    };
    for (const auto& row : table) {
        BOOST_TEST_CONTEXT(row.what)
        {
            BOOST_TEST(row.which.matches(status) == row.matches);
            BOOST_TEST(row.which.matches(timeless) == row.matches_timeless);
        }
    }
}

BOOST_AUTO_TEST_CASE(every_reason_and_mode_has_a_name)
{
    std::set<std::string> words;
    for (int value = 0; value <= static_cast<int>(lost_reason::shutting_down); ++value)
        words.insert(to_string(static_cast<lost_reason>(value)));
    BOOST_TEST(words.size() == 6U);
    BOOST_TEST(!words.contains("unknown"));
    BOOST_TEST(to_string(lock_mode::exclusive) == std::string("exclusive"));
    BOOST_TEST(to_string(lock_mode::shared) == std::string("shared"));
}

BOOST_AUTO_TEST_SUITE_END()
