// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"
#include "two_members.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::string_literals;
using document = mongo::detail::document;

document refusal(int code)
{
    return document::from_json(R"({"ok":0,"errmsg":"no","code":)" + std::to_string(code) + '}');
}

const std::string confirmation = R"("confirm")";

/// The member that is not the primary behaves like a former primary: it refuses writes, and answers reads from old
/// data.
struct stale_member : two_members
{
    stale_member()
    {
        for (auto* const each : {&first, &second})
            each->on_command([this, each](const intercepting_proxy::request& what) { return answer_of(*each, what); });
    }
    ~stale_member() { static_cast<void>(run(ours.shutdown(5s))); }

private:
    document answer_of(const intercepting_proxy& by, const intercepting_proxy::request& what)
    {
        if (&by == primary) {
            auto reply = what.carry_out();
            if (what.command == "find" && &by == &first)
                old_data.insert_or_assign(question_in(what.text), reply.to_json());
            return reply;
        }
        if (what.command != "find")
            return refusal(10107);
        const auto found = old_data.find(question_in(what.text));
        return found == old_data.end() ? what.carry_out() : document::from_json(found->second);
    }
    /// Returns the text without its digits, because queries contain times, which differ.
    static std::string question_in(const std::string& text)
    {
        std::string kept;
        std::ranges::copy_if(text, std::back_inserter(kept), [](char each) { return each < '0' || each > '9'; });
        return kept;
    }

protected:
    std::map<std::string, std::string> old_data;
    const locker ours = add(options(url()));
    const locker theirs = add();
};

/// A server whose commands are recorded.
struct recorded_reads : mongo_fixture
{
    struct note
    {
        int connection;
        std::string command;
        std::string text;
    };

    recorded_reads() { run(run(ours.acquire("warm")).release(on_failure::raise)); }
    ~recorded_reads()
    {
        interceptor.forward_all();
        static_cast<void>(run(ours.shutdown(5s)));
    }

    /// \param refuse code with which confirmations are refused; 0: they are carried out
    void record(int refuse = 0)
    {
        records.clear();
        interceptor.on_hello([this](document said) {
            records.push_back({interceptor.connection(), "hello", {}});
            return said;
        });
        interceptor.on_command([this, refuse](const intercepting_proxy::request& what) {
            records.push_back({interceptor.connection(), std::string(what.command), what.text});
            if (refuse != 0 && what.text.find(confirmation) != std::string::npos)
                return refusal(refuse);
            return what.carry_out();
        });
    }
    [[nodiscard]] std::size_t count(std::string_view command) const
    {
        return static_cast<std::size_t>(std::ranges::count(records, command, &note::command));
    }
    [[nodiscard]] std::size_t count_confirmations() const
    {
        return static_cast<std::size_t>(std::ranges::count_if(
            records, [](const note& each) { return each.text.find(confirmation) != std::string::npos; }));
    }
    /// Checks the last commands, which must have been sent on one connection.
    void check_last(const std::vector<std::string>& commands) const
    {
        BOOST_TEST_REQUIRE(records.size() >= commands.size());
        const auto from = records.end() - static_cast<std::ptrdiff_t>(commands.size());
        for (std::size_t i = 0; i < commands.size(); ++i) {
            const auto& each = from[static_cast<std::ptrdiff_t>(i)];
            BOOST_TEST(each.command == commands[i]);
            BOOST_TEST(each.connection == from->connection);
        }
        BOOST_TEST((records.back().text.find(confirmation) != std::string::npos), records.back().text);
    }

    intercepting_proxy interceptor{io, server->port()};
    const locker ours = add(options(mongodb_url(interceptor.port())));
    const std::shared_ptr<adapter> backend = last_adapter;
    const locker theirs = add();
    std::vector<note> records;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_reads_of_members, stale_member, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_member_that_has_stepped_down_is_not_asked_whether_a_key_is_locked)
{
    auto held = run(theirs.acquire("k"));
    BOOST_TEST(run(ours.is_locked("k")));
    step_down();
    run(held.release(on_failure::raise));
    BOOST_TEST(!run(ours.is_locked("k")));
    BOOST_TEST(event_log->suspensions == 1);
    // Each read also sends `hello` to the next primary.
    primary = &first;
    old_data.clear();
    held = run(theirs.acquire("k"));
    BOOST_TEST(run(ours.is_locked("k")));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(a_member_that_has_stepped_down_is_not_asked_for_a_list)
{
    auto held = run(theirs.acquire("k"));
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.list({.key = "k"})).size() == 1U);
    step_down();
    run(held.release(on_failure::raise));
    BOOST_TEST(run(ours.list({.key = "k"})).empty());
    BOOST_TEST(run(ours.list()).empty());
}

BOOST_AUTO_TEST_CASE(a_member_that_has_stepped_down_is_not_asked_for_a_group)
{
    auto members = theirs.group("g");
    run(members.acquire("apples"));
    BOOST_TEST(run(ours.list({.group = "g"})).size() == 1U);
    BOOST_TEST(run(ours.group("nobody's").release()).empty());
    step_down();
    run(members.acquire("pears"));
    BOOST_TEST(run(ours.group("g").release()).size() == 2U);
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(mongo_reads, recorded_reads, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_negative_answer_is_confirmed_on_its_connection_after_it)
{
    record();
    BOOST_TEST(!run(ours.is_locked("k")));
    check_last({"hello", "find", "update"});
    BOOST_TEST(count("hello") == 1U);
    // A negative answer about a key with a document is confirmed as well.
    BOOST_TEST(!run(ours.is_locked("warm")));
    check_last({"hello", "find", "update"});
    BOOST_TEST(run(ours.list({.key = "k"})).empty());
    check_last({"hello", "find", "update"});
}

BOOST_AUTO_TEST_CASE(a_positive_answer_needs_no_confirmation)
{
    auto held = run(theirs.acquire("k"));
    record();
    BOOST_TEST(run(ours.is_locked("k")));
    BOOST_TEST(count("hello") == 1U);
    BOOST_TEST(count("find") == 1U);
    BOOST_TEST(count_confirmations() == 0U);
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(the_end_of_a_list_is_confirmed)
{
    auto held = run(theirs.acquire("k"));
    static_cast<void>(run(mongo::create_indexes(backend)));
    static_cast<void>(run(ours.list()));
    record();
    BOOST_TEST(run(ours.list()).size() == 1U);
    // One page of text keys, then one of binary keys.
    check_last({"hello", "find", "update"});
    BOOST_TEST(count("find") == 2U);
    BOOST_TEST(count("hello") == 2U);
    BOOST_TEST(count_confirmations() == 1U);
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(members_of_a_group_are_confirmed)
{
    auto members = theirs.group("g");
    run(members.acquire("k"));
    static_cast<void>(run(ours.list()));
    record();
    BOOST_TEST(run(ours.group("nobody's").release()).empty());
    check_last({"hello", "find", "find", "update"});
    record();
    BOOST_TEST(run(ours.group("g").release()).size() == 1U);
    BOOST_TEST(count_confirmations() == 1U);
}

BOOST_AUTO_TEST_CASE(many_reads_at_once_share_their_requests)
{
    constexpr std::size_t many = 50;
    auto held = run(theirs.acquire("k7"));
    record();
    std::vector<running<bool>> asked;
    for (std::size_t i = 0; i < many; ++i)
        asked.push_back(start(io, ours.is_locked("k" + std::to_string(i))));
    for (std::size_t i = 0; i < many; ++i)
        BOOST_TEST(asked[i].get(io) == (i == 7));
    BOOST_TEST(count("find") == 1U);
    BOOST_TEST(count_confirmations() == 1U);
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(a_read_that_begins_while_another_is_confirmed_is_confirmed_by_itself)
{
    std::vector<running<bool>> asked;
    const auto ask_next = [&] { asked.push_back(start(io, ours.is_locked(std::to_string(asked.size())))); };
    records.clear();
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        records.push_back({interceptor.connection(), std::string(what.command), what.text});
        if (what.command == "update" && asked.size() == 1)
            ask_next();
        return what.carry_out();
    });
    ask_next();
    until(
        [&] { return asked.size() == 2 && std::ranges::all_of(asked, [](const auto& each) { return each.done(); }); });
    for (auto& each : asked)
        BOOST_TEST(!each.get(io));
    BOOST_TEST(count("find") == 2U);
    BOOST_TEST(count_confirmations() == 2U);
}

BOOST_AUTO_TEST_CASE(unconfirmed_read_is_unavailable)
{
    const driver test_driver(io, backend);
    for (const int code : {50, 11600, 462}) {
        for (const auto& ask : std::vector<std::function<void()>>{
                 [&] { static_cast<void>(run(ours.is_locked("k"))); },
                 [&] { static_cast<void>(run(ours.list())); },
             })
        {
            record(code);
            COLOCK_THROWS(error, errc::unavailable, ask());
            interceptor.forward_all();
            BOOST_TEST(!run(ours.is_locked("k")));
        }
        record(code);
        BOOST_TEST(!!test_driver.group("g", group_action::release).error);
        interceptor.forward_all();
        BOOST_TEST(!run(ours.is_locked("k")));
    }
}

BOOST_AUTO_TEST_CASE(a_user_who_may_not_write_is_answered_without_confirmation_and_warned_once)
{
    auto held = run(theirs.acquire("held"));
    record(13);
    BOOST_TEST(!run(ours.is_locked("k")));
    BOOST_TEST(event_log->warned_of("not confirmed by a majority"));
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.group("g").release()).empty());
    BOOST_TEST(!run(ours.is_locked("k")));
    BOOST_TEST(count_confirmations() == 4U);
    BOOST_TEST(event_log->warnings.size() == 1U);
    // Breaking a lock is not a read, so it fails.
    const auto broken = run(backend->listing({.action = listing_action::break_key, .filter = {.key = "k"}}));
    BOOST_TEST_REQUIRE(!!broken.error);
    BOOST_TEST((broken.error->code == errc::access_denied));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(every_other_negative_answer_is_confirmed_on_its_connection_too)
{
    const driver test_driver(io, backend);
    for (const auto& claim : {driver::exclusive("k"), driver::shared("s")}) {
        test_driver.grant(claim);
        BOOST_TEST(run(theirs.break_lock(claim->key())).size() == 1U);
        record();
        BOOST_TEST((test_driver.extend(claim, 1h).status == extend_status::not_held));
        check_last({"findAndModify", "update"});
        test_driver.check_not_held(claim);
        check_last({"findAndModify", "update"});
        BOOST_TEST((test_driver.release(claim).status == release_status::not_held));
        check_last({"findAndModify", "update"});
        BOOST_TEST(test_driver.break_key(claim->key()).empty());
        check_last({"hello", "find", "update"});
    }
}

BOOST_AUTO_TEST_CASE(a_document_that_a_full_reply_has_no_room_for_is_read_alone)
{
    // These documents are as large as one with many readers.
    for (const auto* const key : {"k1", "k2"}) {
        static_cast<void>(
            ask(R"({"update":"locks","updates":[{"q":{"_id":")" + std::string(key) +
                R"("},"u":{"t":"00000000000000000000000000000001","x":{"$numberLong":"9223372036854775807"},)"
                R"("f":{"$numberLong":"7"},"h":[],"hx":{"$numberLong":"0"},"o":{"comment":")" +
                std::string(400 * 1024, 'c') + R"("}},"upsert":true}]})"));
    }
    bool is_cut = false;
    interceptor.on_command([&](const intercepting_proxy::request& what) {
        auto reply = what.carry_out();
        if (what.command != "find" || what.text.find("k2") == std::string::npos || std::exchange(is_cut, true))
            return reply;
        auto first = ask_mongodb(server->port(), "colock", R"({"find":"locks","filter":{"_id":"k1"}})");
        return first;
    });
    auto one = start(io, ours.is_locked("k1")), two = start(io, ours.is_locked("k2"));
    BOOST_TEST(one.get(io));
    BOOST_TEST(two.get(io));
    BOOST_TEST(is_cut);
    interceptor.forward_all();
    for (const auto* const key : {"k1", "k2"})
        BOOST_TEST(run(theirs.break_lock(key)).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

/// Each `hello` reaches the server late, so the reader's estimate of the server's clock may be ahead by the ttl of a
/// lock. Meanwhile, the holder renews the lock on another thread.
struct late_reader : mongo_fixture
{
    static constexpr std::chrono::milliseconds ttl = 4s;

    late_reader()
    {
        run(run(ours.acquire("warm")).release(on_failure::raise));
        run_coro(elsewhere, run_coro(elsewhere, theirs.acquire("warm")).release(on_failure::raise));
        interceptor.on_hello([this](const document&) {
            // Real time has to pass, because the clock of the server decides, and the holder renews meanwhile.
            std::this_thread::sleep_for(ttl);
            return ask_mongodb(server->port(), "admin", R"({"hello":1})");
        });
    }

    intercepting_proxy interceptor{io, server->port()};
    asio::io_context elsewhere;
    const locker ours = add(options(mongodb_url(interceptor.port())));
    const locker theirs{mongo::make_adapter(elsewhere.get_executor(), options())};
    const acquire_options renewed{.ttl = ttl, .renewal = renewal::automatic};
};

/// Runs a context on another thread while an object exists.
class other_thread
{
public:
    explicit other_thread(asio::io_context& io) : io_(io)
    {
        io_.restart();
        thread_ = std::thread([this] { io_.run(); });
    }
    other_thread(const other_thread&) = delete;
    other_thread& operator=(const other_thread&) = delete;
    ~other_thread()
    {
        io_.stop();
        thread_.join();
    }

private:
    asio::io_context& io_;
    std::thread thread_;
};

BOOST_FIXTURE_TEST_SUITE(mongo_late_reader, late_reader, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(renewed_lock_is_not_reported_as_free)
{
    const auto held = run_coro(elsewhere, theirs.acquire("k", renewed));
    const other_thread renews(elsewhere);
    BOOST_TEST(run(ours.is_locked("k")));
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.purge()).empty());
    BOOST_TEST(held.held());
}

BOOST_AUTO_TEST_CASE(renewed_lock_is_broken)
{
    const auto held = run_coro(elsewhere, theirs.acquire("k", renewed));
    const other_thread renews(elsewhere);
    BOOST_TEST(run(ours.break_lock("k")).size() == 1U);
}

BOOST_AUTO_TEST_CASE(renewed_group_is_released)
{
    auto group = theirs.group("g");
    run_coro(elsewhere, group.acquire("k", renewed));
    const other_thread renews(elsewhere);
    BOOST_TEST(run(ours.group("g").release()).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
