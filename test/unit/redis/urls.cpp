// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/connect.hpp>
#include <colock/redis/adapter.hpp>

#include "redis/failures.hpp"
#include "redis/url.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;
using redis::detail::location;
using redis::detail::parse_url;

/// Returns the message of the refusal. Fails the test if there is none.
std::string refusal_of(const std::function<void()>& act)
{
    try {
        act();
    } catch (const validation_error& refused) {
        BOOST_TEST(refused.code() == errc::invalid_options);
        return refused.what();
    }
    BOOST_ERROR("was not refused");
    return {};
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_urls)

BOOST_AUTO_TEST_CASE(each_form_is_understood)
{
    const auto is = [](const char* url, const location& expected) {
        BOOST_TEST_CONTEXT(url)
        {
            BOOST_TEST((parse_url(url) == expected));
        }
    };
    is("redis://h", {.hosts = {{"h", "6379"}}});
    is("redis://h/", {.hosts = {{"h", "6379"}}});
    is("redis://h:1/2", {.hosts = {{"h", "1"}}, .database = 2});
    is("rediss://u:p@h", {.tls = true, .hosts = {{"h", "6379"}}, .user = "u", .password = "p"});
    is("redis://:p%40%2f@[::1]:7", {.hosts = {{"::1", "7"}}, .password = "p@/"});
    is("redis://u:a:b@h", {.hosts = {{"h", "6379"}}, .user = "u", .password = "a:b"});
    is("redis+unix:///run/r.sock?db=4", {.socket_path = "/run/r.sock", .database = 4});
    is("redis+sentinel://:p@a,b:2/main/3",
        {.hosts = {{"a", "26379"}, {"b", "2"}}, .master = "main", .password = "p", .database = 3});
    is("redis+cluster://u:p@a,b:2",
        {.cluster = true, .hosts = {{"a", "6379"}, {"b", "2"}}, .user = "u", .password = "p"});
    is("rediss+cluster://a/0", {.tls = true, .cluster = true, .hosts = {{"a", "6379"}}});
    is("REDISS://H", {.tls = true, .hosts = {{"h", "6379"}}});
    is("Redis+Unix:///Run/r@1,a.sock", {.socket_path = "/Run/r@1,a.sock"});
    is("redis+sentinel://a/Main%2C1", {.hosts = {{"a", "26379"}}, .master = "Main,1"});
    is("rediss+sentinel://a/main", {.tls = true, .hosts = {{"a", "26379"}}, .master = "main"});
}

BOOST_AUTO_TEST_CASE(refusal_does_not_repeat_the_url)
{
    for (const auto* url : {"", "h:1", "http://u:secret@h", "redis://", "redis://u:secret@", "redis://u:secret@h:0",
             "redis://u:secret@h:65536", "redis://u:secret@h:x", "redis://u:secret@h/x", "redis://u:secret@h/1/2",
             "redis://u:secret@h?x=1", "redis://u:secret%0a@h", "redis://u:secret%zz@h", "redis://u:secret%4",
             "redis://u:secret@a,b", "redis://u:secret@[::1", "redis://u:secret@[::1]x", "redis+unix://relative",
             "redis+unix:///s?database=secret", "redis+unix:///s?db=1&db=2", "redis+unix:///s?db=secret",
             "redis+sentinel://u:secret@h", "redis+sentinel://a:1/secret,b:1", "redis+sentinel://a/secret,b/secret",
             "redis+sentinel://u:1/secret@a/main", "redis+sentinel://u:secret@a,u:secret@b/main",
             "redis://u:12/secret@h", "redis://h/-0", "redis://%2Fsecret.sock", "redis://h, secret",
             "redis+sentinel://u:secret@h/main/x", "redis+sentinel://u:secret@h/main/1/2"})
    {
        BOOST_TEST_CONTEXT(url)
        {
            BOOST_TEST(refusal_of([&] { static_cast<void>(parse_url(url)); }).find("secret") == std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(unknown_scheme_is_refused_with_the_remedy)
{
    const auto refusal_text = [](const char* url) { return refusal_of([&] { static_cast<void>(parse_url(url)); }); };
    BOOST_TEST(refusal_text("redis+cluster://h/1").find("only the database 0") != std::string::npos);
    BOOST_TEST(refusal_text("redis+quorum://a,b,c").find("redis::make_quorum") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(options_are_checked)
{
    asio::io_context io;
    const auto refuses = [&](const redis::options& settings) {
        const auto refusal_text =
            refusal_of([&] { static_cast<void>(redis::make_adapter(io.get_executor(), settings)); });
        BOOST_TEST(refusal_text.find("secret") == std::string::npos);
    };
    refuses({.prefix = "no colon"});
    refuses({.prefix = std::string(129, 'x') + ":"});
    refuses({.prefix = std::string("a\0:", 3)});
    refuses({.user = "somebody"});
    refuses({.password = "p", .credentials = [](completion<redis::credentials>) {}});
    refuses({.url = "redis://:p@h", .credentials = [](completion<redis::credentials>) {}});
    refuses({.tls = {.ca_file = "file"}});
    refuses({.url = "rediss://h", .tls = {.certificate_file = "file"}});
    refuses({.operation_timeout = 9ms});
    refuses({.operation_timeout = 61min});
    refuses({.connect_timeout = 9ms});
    refuses({.idle_timeout = -1ms});
    refuses({.health_interval = 9ms});
    refuses({.poll_interval = 0ms});
    refuses({.max_clock_lead = -1ms});
    refuses({.max_clock_lead = 1h + 1ms});
    refuses({.url = "redis://secret@h"});
    refuses({.sentinel_user = "secret", .sentinel_password = "secret"});
    refuses({.sentinel_password = "secret"});
    refuses({.url = "redis+sentinel://h/main", .sentinel_user = "secret"});
    for (const auto& settings : {redis::options{.prefix = "", .layout = redis::layout::plain},
             redis::options{.url = "redis+sentinel://h/main", .sentinel_user = "u", .sentinel_password = "p"},
             redis::options{.prefix = "mine:", .idle_timeout = std::chrono::milliseconds::max()}})
        BOOST_TEST(redis::make_adapter(io.get_executor(), settings)->traits().name == "redis");
}

BOOST_AUTO_TEST_CASE(options_of_the_url_reach_their_members)
{
    const auto all = redis::detail::take_url_options(
        {.url = "rediss://me:p@h/2?prefix=app:&layout=plain&sentinel_user=s&sentinel_password=t&tls.ca_file=/ca"
                "&tls.certificate_file=/cert&tls.key_file=/key&tls.server_name=n&operation_timeout=6s"
                "&connect_timeout=500ms&idle_timeout=1m&health_interval=2s&poll_interval=3s&max_clock_lead=4ms"});
    BOOST_TEST(all.url == "rediss://me:p@h/2");
    BOOST_TEST(all.prefix.value() == "app:");
    BOOST_TEST((all.layout == redis::layout::plain));
    BOOST_TEST(all.sentinel_user == "s");
    BOOST_TEST(all.sentinel_password == "t");
    BOOST_TEST((
        all.tls == tls_options{.ca_file = "/ca", .certificate_file = "/cert", .key_file = "/key", .server_name = "n"}));
    BOOST_TEST((all.operation_timeout == 6s));
    BOOST_TEST((all.connect_timeout == 500ms));
    BOOST_TEST((all.idle_timeout == 1min));
    BOOST_TEST((all.health_interval == 2s));
    BOOST_TEST((all.poll_interval == 3s));
    BOOST_TEST((all.max_clock_lead == 4ms));
    BOOST_TEST(
        (redis::detail::take_url_options({.url = "redis://h?layout=standard"}).layout == redis::layout::standard));
    BOOST_TEST(redis::detail::take_url_options({.url = "redis+unix:///a@b#c?poll_interval=3s&db=4"}).url ==
               "redis+unix:///a@b#c?db=4");
}

BOOST_AUTO_TEST_CASE(quorum_urls_with_different_timeouts_are_refused)
{
    asio::io_context io;
    const auto make = [&](const char* last, const redis::options& settings = {}) {
        static_cast<void>(redis::make_quorum(io.get_executor(),
            {"redis://a?operation_timeout=1s&max_clock_lead=1ms", "redis://b?operation_timeout=1s", last}, settings));
    };
    make("redis://c?operation_timeout=1000ms");
    make("redis://c", {.operation_timeout = 1s});
    for (const auto* last :
        {"redis://c", "redis://c?operation_timeout=500ms", "redis://c?operation_timeout=1s&poll_interval=1s"})
        BOOST_TEST(refusal_of([&] { make(last); }).find("operation_timeout or poll_interval") != std::string::npos);
    BOOST_TEST(refusal_of([&] { make("redis://a?operation_timeout=1s"); }).find("twice") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(connect_knows_its_schemes)
{
    asio::io_context io;
    const auto adapter_name = [&](const char* url) {
        return std::string(make_adapter(io.get_executor(), url, {redis::by_url})->traits().name);
    };
    BOOST_TEST(adapter_name("memory:") == "memory");
    BOOST_TEST(adapter_name("redis://h") == "redis");
    BOOST_TEST(adapter_name("rediss://u:p@h:1/2") == "redis");
    BOOST_TEST(adapter_name("redis+unix:///s") == "redis");
    BOOST_TEST(adapter_name("redis+sentinel://h/main") == "redis");
    BOOST_TEST(adapter_name("redis+quorum://u:p@a,b:2,c/1") == "redis quorum");
    BOOST_TEST(adapter_name("rediss+quorum://a,b,c") == "redis quorum");
    BOOST_TEST(adapter_name("MEMORY:") == "memory");
    BOOST_TEST(adapter_name("Redis://h") == "redis");
    BOOST_TEST(adapter_name("REDIS+Quorum://a,b,c") == "redis quorum");
    for (const auto* url : {"", "memory", "secret", "secret://h", "redis", "etcd://u:secret@h",
             "redis+quorum://u:secret@a,b", "redis+quorum://u:secret@a,,c", "redis+quorum://u:secret@a,a,b",
             "redis+quorum://u:secret@a,A,b", "redis+quorum://secret:6379,secret:06379,b",
             "redis+quorum://secret/1,b/1,c/1", "redis+quorum://u:secret@a,u:secret@b,u:secret@c", "memory:secret",
             "memory://secret/", "redis+other://u:secret@h", "redis+quorum", "rediss+"})
    {
        BOOST_TEST_CONTEXT(url)
        {
            BOOST_TEST(refusal_of([&] { static_cast<void>(adapter_name(url)); }).find("secret") == std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(plain_and_wrapped_errors_are_classified)
{
    using redis::detail::refusal;
    using redis::detail::refusal_code;
    const std::pair<const char*, errc> codes[] = {
        {"NOAUTH Authentication required.", errc::access_denied},
        {"WRONGPASS invalid username-password pair", errc::access_denied},
        {"NOPERM this user has no permissions", errc::access_denied},
        {"READONLY You can't write against a read only replica.", errc::unavailable},
        {"LOADING Redis is loading the dataset in memory", errc::unavailable},
        {"BUSY Redis is busy running a script.", errc::unavailable},
        {"ERR max number of clients reached", errc::unavailable},
        {"OOM command not allowed when used memory > 'maxmemory'.", errc::misconfigured_backend},
        {"MISCONF Redis is configured to save RDB snapshots", errc::misconfigured_backend},
        {"WRONGTYPE Operation against a key", errc::misconfigured_backend},
        {"CROSSSLOT Keys in request don't hash to the same slot", errc::misconfigured_backend},
        {"ERR unknown command 'EVALSHA'", errc::misconfigured_backend},
        {"ERR Error running script (call to f_1): @user_script:10: @user_script: 10: -READONLY You can't write",
            errc::unavailable},
        {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: NOPERM no", errc::access_denied},
        {"ERR ACL failure in script: User app has no permissions to run the 'del' command script: 18, on "
         "@user_script:1.",
            errc::access_denied},
        {"ERR The user executing the script can't run this command or subcommand script: 37, on @user_script:1.",
            errc::access_denied},
        {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: The user executing the script can't "
         "access at least one of the keys mentioned in the command arguments",
            errc::access_denied},
        {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM no",
            errc::misconfigured_backend},
    };
    for (const auto& [text, expected] : codes) {
        BOOST_TEST_CONTEXT(text)
        {
            BOOST_TEST(static_cast<int>(refusal_code(text)) == static_cast<int>(expected));
        }
    }
    const std::pair<const char*, const char*> remedies[] = {
        {"NOPERM this user has no permissions", "grant the user the rights that the documentation lists"},
        {"WRONGPASS invalid username-password pair", "correct the user or the password"},
        {"WRONGTYPE Operation against a key", "another program uses this key"},
        {"MOVED 3999 127.0.0.1:6381", "another master serves the slot of the keys"},
        {"CROSSSLOT Keys in request don't hash to the same slot",
            "in a cluster, give a prefix with braces, or write redis+cluster://"},
        {"OOM command not allowed when used memory > 'maxmemory'.", "the server is out of memory"},
        {"READONLY You can't write against a read only replica.", "the server is a replica"},
    };
    for (const auto& [text, remedy] : remedies)
        BOOST_TEST(refusal(text)->detail.find(remedy) != std::string::npos, refusal(text)->detail);
    const std::pair<const char*, const char*> causes[] = {
        {"LOADING Redis is loading the dataset in memory", "the server is loading its data"},
        {"CLUSTERDOWN The cluster is down", "the cluster is down"},
        {"TRYAGAIN Multiple keys request during rehashing of slot", "the server moves its keys to another"},
    };
    for (const auto& [text, cause] : causes)
        BOOST_TEST(refusal(text)->cause.message() == cause);
    const auto message = refusal("ERR unknown command 'SET', with args beginning with: 'k' 'secret' ")->detail;
    BOOST_TEST(message.find("secret") == std::string::npos);
    BOOST_TEST(message.find("unknown command 'SET'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(replies_of_any_shape_are_read)
{
    using boost::redis::resp3::type;
    using redis::detail::reply;
    reply root;
    root.add({type::map, 2, 0, ""});
    root.add({type::blob_string, 1, 1, "id"});
    root.add({type::number, 1, 1, "7"});
    root.add({type::blob_string, 1, 1, "modules"});
    root.add({type::array, 1, 1, ""});
    root.add({type::null, 1, 2, ""});
    BOOST_TEST(root.items.size() == 4u);
    BOOST_TEST(root.at(1).number == 7);
    BOOST_TEST(root.at(3).at(0).is(reply::kind::null));
    BOOST_TEST(root.at(9).at(9).is(reply::kind::none));
    reply odd;
    // The node is deeper than any parent that it could belong to.
    odd.add({type::number, 1, 3, "1"});
    odd.add({type::simple_error, 1, 0, "ERR x"});
    BOOST_TEST(odd.is_error());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
