// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/names.hpp"

#include "redis/client.hpp"
#include "redis/operations/operations.hpp"
#include "redis/pipeline/batch.hpp"
#include "redis/scripts/scripts.hpp"

#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/redis/request.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {
namespace {

settings config_of(layout key_layout)
{
    options values;
    values.prefix = "locks:";
    values.layout = key_layout;
    return settings(values);
}

claim_ptr claim_of(lock_mode mode)
{
    claim_request request{.key = "orders", .mode = mode};
    request.owner = std::make_shared<const owner_data>(owner_data{"me", "here", "", ""});
    return claim_ptr(new claim(std::move(request)));
}

template <argument T>
std::string text_of(const T& written)
{
    std::string text;
    written.append_to(text);
    BOOST_TEST(written.size() == text.size());
    return text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_names)

BOOST_AUTO_TEST_CASE(command_contains_several_key_names)
{
    const auto config = config_of(layout::standard);
    boost::redis::request request;
    request.push("DEL", lock_key(config, "a"), lock_key(config, "bc"), "d");
    BOOST_TEST(request.payload() == "*4\r\n$3\r\nDEL\r\n$7\r\nlocks:a\r\n$8\r\nlocks:bc\r\n$1\r\nd\r\n");
}

BOOST_AUTO_TEST_CASE(command_contains_several_tokens)
{
    const auto first = claim_of(lock_mode::exclusive);
    const auto second = claim_of(lock_mode::exclusive);
    boost::redis::request request;
    request.push("ECHO", token_text(*first), token_text(*second));
    BOOST_TEST(request.payload() ==
               "*3\r\n$4\r\nECHO\r\n$32\r\n" + first->token().hex() + "\r\n$32\r\n" + second->token().hex() + "\r\n");
}

BOOST_AUTO_TEST_CASE(value_has_its_reported_size)
{
    const auto standard = config_of(layout::standard);
    const auto plain = config_of(layout::plain);
    const auto writer = claim_of(lock_mode::exclusive);
    const auto reader = claim_of(lock_mode::shared);
    BOOST_TEST(text_of(stored_value(plain, *writer)) == writer->token().hex());
    const auto written = text_of(stored_value(standard, *writer));
    BOOST_TEST(written.starts_with(writer->token().hex()));
    BOOST_TEST(written.ends_with(std::string("me\0here\0\0", 9)));
    BOOST_TEST(text_of(stored_value(standard, *reader)).starts_with("s" + reader->token().hex()));
}

BOOST_AUTO_TEST_CASE(batched_script_reuses_memory_of_earlier_names)
{
    const auto config = config_of(layout::standard);
    batched_script script_of_batch;
    script_of_batch.add(script::form::digest, lock_key(config, "a long name of a key"), std::string_view("argument"));
    script_of_batch.clear();
    script_of_batch.add(script::form::digest, lock_key(config, "b"), std::string_view("c"));
    BOOST_TEST(script_of_batch.keys.at(0) == "locks:b");
    BOOST_TEST(script_of_batch.arguments.at(0) == "c");
}

BOOST_AUTO_TEST_CASE(deadline_counts_from_the_start_of_the_operation_if_the_claim_has_one)
{
    asio::io_context io;
    const auto used = client::make(io.get_executor(), config_of(layout::standard), {});
    const auto claim = claim_of(lock_mode::exclusive);
    const auto deadline_of_release = [&] {
        return make_release(
            *used, claim, completion<release_outcome>([](release_outcome) {}), release_guarantee::released)
            ->deadline;
    };
    // The first submission sets the deadline.
    BOOST_TEST((deadline_of_release() == lease_clock::time_point()));
    const lease_clock::time_point start{std::chrono::hours(1)};
    claim->set_operation_start(start);
    BOOST_TEST((deadline_of_release() == start + used->config().operation_timeout));
}

// While a slot of a cluster migrates, a script with several keys is refused. A client of a cluster can leave the index
// out, if a script does nothing else with it.
BOOST_AUTO_TEST_CASE(script_about_one_lock_has_one_key_and_uses_an_index_only_by_its_functions)
{
    const auto& all = scripts::get();
    for (const auto* each : {&all.acquire, &all.acquire_plain, &all.acquire_shared, &all.adopt, &all.adopt_shared,
             &all.release, &all.withdraw, &all.release_shared, &all.extend, &all.extend_shared, &all.valid,
             &all.valid_shared, &all.break_holders})
    {
        const auto text = each->text();
        BOOST_TEST(text.find("KEYS[3]") == text.npos);
        constexpr std::string_view index = "KEYS[2]";
        for (auto at = text.find(index); at != text.npos; at = text.find(index, at + 1)) {
            const auto before = text.substr(0, at), after = text.substr(at + index.size());
            const bool is_condition = after.starts_with(" and") || after.starts_with(" then");
            const bool is_argument = before.ends_with("index_add(") || before.ends_with("index_remove(");
            BOOST_TEST((is_condition || is_argument), after.substr(0, 40));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
