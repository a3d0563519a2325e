// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include "util/option_errors.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

using std::chrono::milliseconds;
constexpr milliseconds ten_years = std::chrono::hours(24 * 3650);

struct refusal
{
    std::string what;
    std::string key;
    acquire_options options;
    errc code;
};

std::vector<refusal> refusals()
{
    return {
        {"empty key", "", {}, errc::invalid_key},
        {"key of 513 bytes", std::string(513, 'k'), {}, errc::invalid_key},
        {"key with a NUL", std::string("a\0b", 3), {}, errc::invalid_key},
        {"key that is a NUL", std::string(1, '\0'), {}, errc::invalid_key},
        {"negative ttl", "k", {.ttl = -1ms}, errc::invalid_ttl},
        {"most negative ttl", "k", {.ttl = milliseconds::min()}, errc::invalid_ttl},
        {"ttl below the resolution", "k", {.ttl = 99ms}, errc::invalid_ttl},
        {"ttl over ten years", "k", {.ttl = ten_years + 1ms}, errc::invalid_ttl},
        {"greatest ttl", "k", {.ttl = milliseconds::max()}, errc::invalid_ttl},
        {"max_holders with an exclusive lock", "k", {.max_holders = 1}, errc::invalid_options},
        {"mode that is none", "k", {.mode = static_cast<lock_mode>(7)}, errc::invalid_options},
        {"negative delay", "k", {.retry = retry_policy::fixed(-1ms)}, errc::invalid_retry},
        {"empty custom function", "k", {.retry = retry_policy::custom({})}, errc::invalid_retry},
        {"long owner", "k", {.owner = std::string(257, 'o')}, errc::invalid_options},
        {"owner with a NUL", "k", {.owner = std::string("a\0", 2)}, errc::invalid_options},
        {"long comment", "k", {.comment = std::string(257, 'c')}, errc::invalid_options},
        {"long host", "k", {.host = std::string(257, 'h')}, errc::invalid_options},
        {"host with a NUL", "k", {.host = std::string("\0h", 2)}, errc::invalid_options},
        {"comment with a NUL", "k", {.comment = std::string("\0c", 2)}, errc::invalid_options},
        {"max_hold without a ttl", "k", {.ttl = 0ms, .max_hold = 1s}, errc::invalid_options},
        {"max_hold 0", "k", {.max_hold = 0ms}, errc::invalid_options},
        {"negative max_hold", "k", {.max_hold = -5ms}, errc::invalid_options},
        {"max_hold over ten years", "k", {.max_hold = ten_years + 1ms}, errc::invalid_options},
    };
}

} // namespace

BOOST_AUTO_TEST_SUITE(input)

BOOST_AUTO_TEST_CASE(bad_input_is_refused_at_the_co_await_before_anything_is_sent)
{
    virtual_fixture env(backend_kind::scripted);
    for (const auto& row : refusals()) {
        BOOST_TEST_CONTEXT(row.what)
        {
            // The call itself does not throw.
            auto acquire = env.locker->acquire(row.key, row.options);
            const auto thrown =
                required_error<validation_error>([&] { static_cast<void>(env.run(std::move(acquire))); });
            BOOST_TEST((thrown.code() == row.code), thrown.what());
            BOOST_TEST(!thrown.detail().empty());
            BOOST_TEST(thrown.backend() == "memory");
            BOOST_TEST(thrown.attempts() == 0U);

            COLOCK_THROWS(validation_error, row.code, env.run(env.locker->try_acquire(row.key, row.options)));
            COLOCK_THROWS(validation_error, row.code, env.run(env.locker->with_lock(row.key, row.options, [] {})));
            COLOCK_THROWS(validation_error, row.code, env.run(env.locker->acquire_all({"a", row.key}, row.options)));

            error_code code;
            env.locker->async_acquire(row.key, row.options, [&](error_code failed, lock) { code = failed; });
            BOOST_TEST(!code);
            env.ready();
            BOOST_TEST((code == row.code));
        }
    }
    BOOST_TEST(env.script->calls().empty());
    BOOST_TEST(env.locker->stats().attempts == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(refusal_says_what_is_wrong)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->set_capabilities({});
    env.script->set_max_clock_lead(1s);
    env.locker.emplace(env.backend());
    const struct
    {
        std::string key;
        acquire_options options;
        std::string text;
    } table[] = {
        {"", {}, "the key is empty"},
        {"k", {.ttl = 0ms}, "the backend has no locks without a ttl"},
        {"k", {.ttl = 3s}, "which shortens the lease; give at least"},
        {"k", {.retry = retry_policy::custom({})}, "the custom retry function is empty"},
    };
    for (const auto& row : table) {
        const auto refused =
            thrown_by<validation_error>([&] { static_cast<void>(env.run(env.locker->acquire(row.key, row.options))); });
        BOOST_TEST_REQUIRE(refused.has_value(), row.text);
        BOOST_TEST(std::string(refused->what()).find(row.text) != std::string::npos, refused->what());
    }
}

BOOST_AUTO_TEST_CASE(the_ends_of_each_range_are_accepted)
{
    virtual_fixture env;
    const struct
    {
        std::string key;
        acquire_options options;
    } accepted[] = {
        {std::string(512, 'k'), {}},
        {std::string(1, '\x01'), {}},
        {"\xff\xfe binary", {}},
        {"k", {.ttl = 100ms}},
        {"k", {.ttl = ten_years}},
        {"k", {.ttl = 0ms}},
        {"k", {.mode = lock_mode::shared, .max_holders = 1}},
        {"k", {.owner = std::string(256, 'o'), .comment = std::string(256, 'c')}},
        {"k", {.max_hold = 100ms}},
    };
    for (const auto& [key, options] : accepted) {
        auto held = env.acquire(key, options);
        BOOST_TEST(held.held());
        env.run(held.release(on_failure::raise));
    }
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(unsupported_options_are_refused_early)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->set_capabilities({});
    env.locker.emplace(env.backend());
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->acquire("k", {.mode = lock_mode::shared})));
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->acquire("k", {.ttl = 0ms})));
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->is_locked("k")));
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->list()));
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->purge()));
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->break_lock("k")));
    env.script->set_capabilities({.shared = true});
    env.locker.emplace(env.backend());
    COLOCK_THROWS(validation_error, errc::unsupported,
        env.run(env.locker->acquire("k", {.mode = lock_mode::shared, .max_holders = 2})));
    BOOST_TEST(env.script->count(operation::create) == 0U);
}

BOOST_AUTO_TEST_CASE(a_locker_refuses_options_that_contradict_each_other)
{
    asio::io_context io;
    const auto backend = memory::make_adapter(io.get_executor());
    COLOCK_THROWS(validation_error, errc::invalid_options, locker(nullptr));
    COLOCK_THROWS(validation_error, errc::invalid_options, memory::make_adapter(asio::any_io_executor()));
    const struct
    {
        std::string what;
        locker_options options;
        errc code;
    } table[] = {
        {"negative ttl", {.ttl = -1ms}, errc::invalid_ttl},
        {"short ttl", {.ttl = 99ms}, errc::invalid_ttl},
        {"long ttl", {.ttl = ten_years + 1ms}, errc::invalid_ttl},
        {"retry", {.retry = retry_policy::exponential(1s, 0.5, 2s)}, errc::invalid_retry},
        {"owner", {.owner = std::string(257, 'o')}, errc::invalid_options},
        {"host", {.host = std::string("h\0", 2)}, errc::invalid_options},
        {"short operation timeout", {.operation_timeout = 9ms}, errc::invalid_options},
        {"long operation timeout", {.operation_timeout = 1h + 1ms}, errc::invalid_options},
        {"negative minimum validity", {.minimum_validity = -1ms}, errc::invalid_options},
        {"negative stop margin", {.stop_margin = -1ms}, errc::invalid_options},
        {"max_hold without a ttl", {.ttl = 0ms, .max_hold = 1s}, errc::invalid_options},
        {"debug without an observer", {.debug = true}, errc::invalid_options},
        {"short max_hold", {.max_hold = 99ms}, errc::invalid_options},
        {"long max_hold", {.max_hold = ten_years + 1ms}, errc::invalid_options},
        {"short purge interval", {.purge = background_purge{.interval = 99ms}}, errc::invalid_options},
        {"long purge interval", {.purge = background_purge{.interval = 720h + 1ms}}, errc::invalid_options},
        {"no purge limit", {.purge = background_purge{.limit = 0}}, errc::invalid_options},
        {"large purge limit", {.purge = background_purge{.limit = 100'001}}, errc::invalid_options},
    };
    for (const auto& row : table) {
        BOOST_TEST_CONTEXT(row.what)
        {
            COLOCK_THROWS(validation_error, row.code, locker(backend, row.options));
        }
    }
    const locker_options fine[] = {{}, {.ttl = 0ms}, {.operation_timeout = 10ms}, {.operation_timeout = 1h},
        {.minimum_validity = 0ms}, {.stop_margin = 0ms}, {.max_hold = 100ms},
        {.purge = background_purge{.interval = 100ms, .limit = 1}},
        {.purge = background_purge{.interval = 720h, .limit = 100'000}}};
    for (const auto& options : fine)
        BOOST_CHECK_NO_THROW(locker(backend, options));
    const auto blind = std::make_shared<instrumented_adapter>(backend);
    blind->set_capabilities({.expires = true});
    COLOCK_THROWS(validation_error, errc::unsupported, locker(blind, {.purge = background_purge{}}));
}

BOOST_AUTO_TEST_CASE(max_hold_of_the_locker_has_no_effect_without_a_ttl)
{
    virtual_fixture env(backend_kind::memory, {.max_hold = 10s});
    const auto held = env.acquire("k", {.ttl = 0ms});
    env.advance_by_steps(1min, 1s);
    BOOST_TEST(held.held());
}

BOOST_AUTO_TEST_CASE(durations_in_messages_have_the_largest_unit_that_is_exact)
{
    using detail::in_words;
    BOOST_TEST(in_words(0ms) == "0 ms");
    BOOST_TEST(in_words(-1ms) == "-1 ms");
    BOOST_TEST(in_words(1500ms) == "1500 ms");
    BOOST_TEST(in_words(30s) == "30 s");
    BOOST_TEST(in_words(90s) == "90 s");
    BOOST_TEST(in_words(-2min) == "-2 min");
    BOOST_TEST(in_words(90min) == "90 min");
    BOOST_TEST(in_words(1h) == "1 h");
    BOOST_TEST(in_words(24h) == "24 h");
    BOOST_TEST(in_words(36h) == "36 h");
    BOOST_TEST(in_words(48h) == "2 days");
    BOOST_TEST(in_words(ten_years) == "3650 days");
    BOOST_TEST(in_words(milliseconds::max()) == std::to_string(milliseconds::max().count()) + " ms");
    BOOST_TEST(in_words(milliseconds::min()) == std::to_string(milliseconds::min().count()) + " ms");
}

BOOST_AUTO_TEST_CASE(no_message_holds_a_token)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    const auto token = held.token().hex();
    env.script->next(operation::extend, step::not_held());
    const auto extended = thrown_by<extend_error>([&] { env.run(held.extend(10s)); });
    const auto released = thrown_by<release_error>([&] { env.run(held.release(on_failure::raise)); });
    BOOST_TEST_REQUIRE((extended && released));
    BOOST_TEST(std::string(extended->what()).find(token) == std::string::npos);
    BOOST_TEST(std::string(released->what()).find(token) == std::string::npos);
    env.script->next(operation::create, step::fail(errc::access_denied, "no rights"));
    const auto refused = required_error<create_error>([&] { static_cast<void>(env.run(env.locker->acquire("k"))); });
    const auto sent = env.script->calls();
    for (const auto& each : sent)
        BOOST_TEST(std::string(refused.what()).find(each.token.hex()) == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
