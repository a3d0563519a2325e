// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// What functions accept as a key, and as several keys.
#include "support/virtual_fixture.hpp"

#include <colock/keys.hpp>

#include <array>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <list>
#include <ranges>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Converts to std::string_view, as the string classes of other libraries do.
struct foreign_string
{
    operator std::string_view() const { return "k"; }
};

template <class T>
constexpr bool is_key = std::convertible_to<T, key_name>;
static_assert(is_key<const char*> && is_key<const char (&)[2]> && is_key<std::string> && is_key<const std::string&>);
static_assert(is_key<std::string_view> && is_key<foreign_string>);
static_assert(!is_key<int> && !is_key<char> && !is_key<std::vector<std::string>> && !is_key<colock::group_member>);

template <class T>
constexpr bool are_keys = std::convertible_to<T, group_members>;
static_assert(are_keys<std::vector<std::string>> && are_keys<const std::set<std::string>&>);
static_assert(are_keys<std::array<std::string_view, 2>> && are_keys<const char* (&)[2]>);
static_assert(are_keys<std::list<foreign_string>> && are_keys<std::initializer_list<const char*>>);
static_assert(are_keys<std::ranges::istream_view<std::string>>);
static_assert(are_keys<std::vector<colock::group_member>> && are_keys<std::initializer_list<colock::group_member>>);
// A string is not a range of keys.
static_assert(!are_keys<std::string> && !are_keys<const std::string&> && !are_keys<std::string_view>);
static_assert(!are_keys<const char*> && !are_keys<const char (&)[2]> && !are_keys<foreign_string>);
static_assert(!are_keys<std::filesystem::path> && !are_keys<std::vector<int>> && !are_keys<std::vector<char>>);

std::vector<std::string> keys_of(const lock_group& group)
{
    std::vector<std::string> keys;
    for (const auto& each : group.locks())
        keys.push_back(each.key());
    return keys;
}

void check_keys(virtual_fixture& env, asio::awaitable<lock_group> acquire)
{
    lock_group group = env.run(std::move(acquire));
    const auto keys = keys_of(group);
    const std::vector<std::string> expected{"a", "b"};
    BOOST_TEST(keys == expected, boost::test_tools::per_element());
    env.run(group.release());
}

} // namespace

BOOST_AUTO_TEST_SUITE(keys)

BOOST_AUTO_TEST_CASE(key_is_copied_at_the_call)
{
    virtual_fixture env;
    std::string text = "first";
    auto acquire = env.locker->acquire(std::string_view(text));
    auto attempt = env.locker->try_acquire(text.c_str(), 1s);
    auto locked = env.locker->is_locked(text);
    auto body = env.locker->with_lock(std::string_view(text), [](lock& held) { return held.key(); });
    text = "other";
    BOOST_TEST(env.run(std::move(body)) == "first");
    lock held = env.run(std::move(acquire));
    BOOST_TEST(held.key() == "first");
    BOOST_TEST(!env.run(std::move(attempt)));
    BOOST_TEST(env.run(std::move(locked)));
}

BOOST_AUTO_TEST_CASE(key_converts_to_a_string_view)
{
    virtual_fixture env;
    BOOST_TEST(env.run(env.locker->acquire(foreign_string{})).key() == "k");
    BOOST_TEST(env.run(env.locker->with_lock(foreign_string{}, [](lock& held) { return held.key(); })) == "k");
    std::string key = "moved";
    BOOST_TEST(env.run(env.locker->acquire(std::move(key))).key() == "moved");
    BOOST_TEST(key.empty());
}

BOOST_AUTO_TEST_CASE(keys_of_every_range_are_acquired)
{
    virtual_fixture env;
    check_keys(env, env.locker->acquire_all(std::vector<std::string>{"b", "a"}));
    check_keys(env, env.locker->acquire_all(std::set<std::string>{"a", "b"}));
    check_keys(env, env.locker->acquire_all(std::array<std::string_view, 2>{"b", "a"}));
    check_keys(env, env.locker->acquire_all(std::deque<const char*>{"b", "a"}));
    check_keys(env, env.locker->acquire_all({std::string_view("b"), "a", std::string("b")}));
    const char* literals[] = {"b", "a"};
    check_keys(env, env.locker->acquire_all(literals));
    std::istringstream words("b a");
    check_keys(env, env.locker->acquire_all(std::views::istream<std::string>(words)));
    const std::vector<int> numbers{1, 0};
    check_keys(env, env.locker->acquire_all(numbers | std::views::transform([](int number) {
        return std::string(1, static_cast<char>('a' + number));
    })));
}

BOOST_AUTO_TEST_CASE(body_of_every_range_gets_a_group)
{
    virtual_fixture env;
    const auto count = [](lock_group& held) { return held.size(); };
    BOOST_TEST(env.run(env.locker->with_lock(std::set<std::string>{"a", "b"}, count)) == 2U);
    BOOST_TEST(env.run(env.locker->with_lock({"a", "b"}, count)) == 2U);
    BOOST_TEST(env.run(env.locker->with_lock({"a"}, {.ttl = 1s}, count)) == 1U);
    BOOST_TEST(env.run(env.locker->try_with_lock({"a", "b", "c"}, 1s, count)).value() == 3U);
    std::size_t size = 0;
    env.locker->async_with_lock(
        std::array<std::string_view, 2>{"b", "a"}, count, [&size](std::exception_ptr failure, std::size_t result) {
            BOOST_TEST((failure == nullptr));
            size = result;
        });
    env.ready();
    BOOST_TEST(size == 2U);
}

BOOST_AUTO_TEST_CASE(empty_range_is_refused)
{
    virtual_fixture env;
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(env.locker->acquire_all(std::set<std::string>{})));
}

BOOST_AUTO_TEST_SUITE_END()
