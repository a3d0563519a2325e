// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/scram.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <string_view>

using namespace colock::mongo::detail;

namespace {

struct vector
{
    scram_hash by;
    std::string user;
    std::string password;
    std::string nonce;
    std::string server_first;
    std::string client_last;
    std::string server_last;
};

const vector rfc_5802{.by = scram_hash::sha1,
    .user = "user",
    .password = "pencil",
    .nonce = "fyko+d2lbbFgONRv9qkxdawL",
    .server_first = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    .client_last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    .server_last = "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="};

const vector rfc_7677{.by = scram_hash::sha256,
    .user = "user",
    .password = "pencil",
    .nonce = "rOprNGfwEbeRWgbNEkqO",
    .server_first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    .client_last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                   "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    .server_last = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="};

/// From MongoDB's specification of authentication.
const vector mongodb_sha1{.by = scram_hash::sha1,
    .user = "user",
    .password = digested_password("user", "pencil"),
    .nonce = "fyko+d2lbbFgONRv9qkxdawL",
    .server_first = "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
    .client_last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=",
    .server_last = "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0="};

std::string key_of(const salting& how, std::string_view password, int rounds_at_a_time)
{
    salted_password made(how, password);
    while (!made.advance(rounds_at_a_time))
        BOOST_TEST(!made.finished());
    BOOST_TEST(made.finished());
    return made.key();
}

scram conversation(const vector& from = rfc_7677)
{
    return {from.by, from.user, from.nonce};
}

bool refuses_challenge(std::string_view said, std::string_view why)
{
    auto tested = conversation();
    return !tested.take_first(said) && tested.why().find(why) != std::string::npos;
}

constexpr const char* nonces = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,";
constexpr const char* salt = "s=W22ZaJ0SNY7soEsUEjb6gQ==,";

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_scram)

BOOST_AUTO_TEST_CASE(the_published_conversations_are_held)
{
    for (const auto& each : {rfc_5802, rfc_7677, mongodb_sha1}) {
        auto tested = conversation(each);
        BOOST_TEST(tested.first() == "n,,n=user,r=" + each.nonce);
        BOOST_TEST_REQUIRE(tested.take_first(each.server_first), tested.why());
        BOOST_TEST(tested.last(key_of(tested.asked(), each.password, 500)) == each.client_last);
        BOOST_TEST(tested.take_last(each.server_last), tested.why());
    }
}

BOOST_AUTO_TEST_CASE(in_how_many_parts_a_password_is_hashed_makes_no_difference)
{
    const salting how{.by = scram_hash::sha256, .salt = "salt", .rounds = 4096};
    const auto at_once = key_of(how, "password", 100'000);
    // RFC 7914 has no such vector; this one is widely published beside RFC 6070.
    const std::string_view expected("\xc5\xe4\x78\xd5\x92\x88\xc8\x41\xaa\x53\x0d\xb6\x84\x5c\x4c\x8d"
                                    "\x96\x28\x93\xa0\x01\xce\x4e\x11\xa4\x96\x38\x73\xaa\x98\x13\x4a",
        32);
    BOOST_TEST((at_once == expected));
    BOOST_TEST((key_of(how, "password", 1) == expected));
    BOOST_TEST((key_of(how, "password", 500) == expected));
    // One round is the first.
    BOOST_TEST((key_of({.by = scram_hash::sha1, .salt = "salt", .rounds = 1}, "password", 1) ==
                std::string_view("\x0c\x60\xc8\x0f\x96\x1f\x0e\x71\xf3\xa9\xb5\x24\xaf\x60\x12\x06\x2f\xe0\x37\xa6")));
    BOOST_TEST((key_of(how, "", 500) != key_of(how, "x", 500)));
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_know_the_password_is_refused)
{
    auto tested = conversation();
    BOOST_TEST_REQUIRE(tested.take_first(rfc_7677.server_first));
    static_cast<void>(tested.last(key_of(tested.asked(), "pencil", 500)));
    for (const auto* const said :
        {"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "v=", "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95A==",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", "v=?", "e=invalid-proof", ""})
    {
        BOOST_TEST(!tested.take_last(said));
        BOOST_TEST(tested.why() == "the server does not prove that it knows the password");
    }
}

BOOST_AUTO_TEST_CASE(a_server_that_proves_itself_before_it_was_asked_to_is_refused)
{
    auto tested = conversation();
    BOOST_TEST(!tested.take_last("v="));
    BOOST_TEST(!tested.take_last(rfc_7677.server_last));
}

BOOST_AUTO_TEST_CASE(a_challenge_that_answers_another_is_refused)
{
    const auto rest = std::string(salt) + "i=4096";
    BOOST_TEST(refuses_challenge("r=another," + rest, "no answer to ours"));
    // It has added nothing of its own.
    BOOST_TEST(refuses_challenge("r=rOprNGfwEbeRWgbNEkqO," + rest, "no answer to ours"));
}

BOOST_AUTO_TEST_CASE(too_few_rounds_and_absurdly_many_are_refused)
{
    const auto with = [](const char* rounds) { return std::string(nonces) + salt + "i=" + rounds; };
    BOOST_TEST(refuses_challenge(with("4095"), "few rounds"));
    BOOST_TEST(refuses_challenge(with("0"), "few rounds"));
    BOOST_TEST(refuses_challenge(with("-5000"), "few rounds"));
    BOOST_TEST(refuses_challenge(with("1000001"), "million"));
    auto most = conversation();
    BOOST_TEST(most.take_first(with("1000000")));
}

BOOST_AUTO_TEST_CASE(what_is_no_challenge_is_refused)
{
    const auto whole = std::string(nonces) + salt + "i=4096";
    for (std::size_t size = 0; size + 3 < whole.size(); ++size)
        BOOST_TEST(refuses_challenge(whole.substr(0, size), "cannot be read"), whole.substr(0, size));
    BOOST_TEST(refuses_challenge(std::string(nonces) + salt + "i=99999999999999999999", "cannot be read"));
    BOOST_TEST(refuses_challenge(std::string(nonces) + salt + "i=4096x", "cannot be read"));
    BOOST_TEST(refuses_challenge(std::string(nonces) + "s=!!!!,i=4096", "cannot be read"));
    BOOST_TEST(refuses_challenge(std::string(nonces) + "s=====,i=4096", "cannot be read"));
    // An extension that it must understand.
    BOOST_TEST(refuses_challenge("m=more," + whole, "cannot be read"));
}

BOOST_AUTO_TEST_CASE(a_users_name_cannot_end_early)
{
    BOOST_TEST(scram(scram_hash::sha256, "a,b=c", "x").first() == "n,,n=a=2Cb=3Dc,r=x");
    BOOST_TEST(scram(scram_hash::sha256, "gr\xc3\xbc\xc3\x9f", "x").first() == "n,,n=gr\xc3\xbc\xc3\x9f,r=x");
}

BOOST_AUTO_TEST_SUITE_END()
