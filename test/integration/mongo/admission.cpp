// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guarded_server.hpp"
#include "intercepting_proxy.hpp"
#include "server.hpp"
#include "support/certificates.hpp"
#include "support/run.hpp"

#include <colock/connect.hpp>
#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace colock::testing {

namespace {

void check_accepted(const mongo::options& options)
{
    asio::io_context io;
    const locker locks(mongo::make_adapter(io.get_executor(), options));
    run_coro(io, run_coro(io, locks.acquire("k")).release(on_failure::raise));
    run_coro(io, locks.shutdown(5s));
}

std::string check_refused(const mongo::options& options, errc why, const retry_policy& retry = retry_policy::forever())
{
    asio::io_context io;
    const locker locks(mongo::make_adapter(io.get_executor(), options));
    try {
        static_cast<void>(run_coro(io, locks.acquire("k", {.retry = retry})));
        BOOST_ERROR("the server was accepted");
    } catch (const create_error& refused) {
        BOOST_TEST((refused.code() == why), refused.what());
        BOOST_TEST(std::string(refused.what()).find("secret") == std::string::npos, refused.what());
        return refused.what();
    }
    return {};
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_admission, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(
    wrong_credentials_are_denied, *boost::unit_test::precondition(not_ferretdb("users of one database")))
{
    const guarded_server guarded;
    const auto at = "127.0.0.1:" + std::to_string(guarded.running.port());
    check_accepted({.url = "mongodb://sha1_user:secret@" + at});
    check_accepted({.url = "mongodb://other_db_user:secret@" + at + "/other_db?authMechanism=SCRAM-SHA-256"});
    check_accepted({.url = "mongodb://" + at + "/?authSource=other_db", .user = "other_db_user", .password = "secret"});
    check_refused({.url = "mongodb://sha1_user:secret2@" + at}, errc::access_denied);
    check_refused({.url = "mongodb://nobody:secret@" + at}, errc::access_denied);
    check_refused({.url = "mongodb://other_db_user:secret@" + at}, errc::access_denied);
    check_refused({.url = "mongodb://" + at}, errc::access_denied);
}

BOOST_AUTO_TEST_CASE(url_options_take_effect)
{
    mongodb_server running;
    asio::io_context io;
    const locker locks(make_adapter(io.get_executor(),
        mongodb_url(running.port()) + "&database=by_url&collection=named&operation_timeout=6s", {mongo::by_url}));
    auto held = run_coro(io, locks.acquire("k"));
    const auto is_in = [&](const std::string& database, const std::string& collection) {
        const auto found =
            ask_mongodb(running.port(), database, R"({"find":")" + collection + R"(","filter":{"_id":"k"}})");
        return found.to_json().find(R"("_id")") != std::string::npos;
    };
    BOOST_TEST(is_in("by_url", "named"));
    BOOST_TEST(!is_in("colock", "locks"));
    run_coro(io, held.release(on_failure::raise));
    run_coro(io, locks.shutdown(5s));
}

BOOST_AUTO_TEST_CASE(untrusted_server_is_refused)
{
    const certificates known;
    const auto with = [&](const std::string& name) {
        return std::vector<std::string>{
            "--tls-cert-file", known.file(name + ".pem"), "--tls-key-file", known.file(name + ".key")};
    };
    const mongodb_server right(with("right")), named(with("named"));
    const auto url = [](const mongodb_server& of) {
        return "mongodb://127.0.0.1:" + std::to_string(of.port()) + "/?tls=true";
    };
    check_accepted({.url = url(right), .tls = {.ca_file = known.file("ca.pem")}});
    check_accepted({.url = url(right) + "&tlsCAFile=" + known.file("ca.pem")});
    check_accepted({.url = url(named), .tls = {.ca_file = known.file("ca.pem"), .server_name = "named.example"}});
    const auto unknown =
        check_refused({.url = url(right), .tls = {.ca_file = known.file("other.pem")}}, errc::misconfigured_backend);
    const auto misnamed =
        check_refused({.url = url(named), .tls = {.ca_file = known.file("ca.pem")}}, errc::misconfigured_backend);
    // The message distinguishes an unknown authority from a wrong name.
    BOOST_TEST(unknown.find("mismatch") == std::string::npos, unknown);
    BOOST_TEST(misnamed.find("mismatch") != std::string::npos, misnamed);
    check_refused({.url = url(right), .tls = {.ca_file = known.file("none.pem")}}, errc::invalid_options);
}

BOOST_AUTO_TEST_CASE(failed_handshake_suggests_a_server_without_tls)
{
    const mongodb_server plain;
    const certificates known;
    const auto why = check_refused({.url = "mongodb://127.0.0.1:" + std::to_string(plain.port()) + "/?tls=true",
                                       .tls = {.ca_file = known.file("ca.pem")},
                                       .operation_timeout = 3s,
                                       .connect_timeout = 1s},
        errc::unavailable, retry_policy::never());
    BOOST_TEST(why.find("does the server speak TLS?") != std::string::npos, why);
}

BOOST_AUTO_TEST_CASE(router_of_a_sharded_cluster_is_refused)
{
    const mongodb_server any;
    asio::io_context io;
    intercepting_proxy interceptor(io, any.port());
    interceptor.on_hello([](const mongo::detail::document& reply) {
        mongo::detail::document made;
        bson_copy_to_excluding_noinit(reply.get(), made.get(), "msg", nullptr);
        bson_append_utf8(made.get(), "msg", -1, "isdbgrid", -1);
        return made;
    });
    const locker locks(mongo::make_adapter(io.get_executor(), {.url = mongodb_url(interceptor.port())}));
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(run_coro(io, locks.acquire("k"))), create_error, [](const create_error& refused) {
            BOOST_TEST((refused.code() == errc::misconfigured_backend), refused.what());
            return std::string(refused.what()).find("is a router of a sharded cluster") != std::string::npos;
        });
}

BOOST_AUTO_TEST_CASE(
    replica_set_with_another_name_is_refused, *boost::unit_test::precondition(not_ferretdb("replica set")))
{
    // The name that the MongoDB server of the tests gives its replica set.
    const std::string actual_name = "secantus";
    const mongodb_server any;
    const auto url = "mongodb://127.0.0.1:" + std::to_string(any.port()) + "/?replicaSet=";
    check_accepted({.url = url + actual_name});
    check_refused({.url = url + "other"}, errc::misconfigured_backend);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
