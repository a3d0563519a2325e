// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "go_between.hpp"
#include "locker_scene.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/rig.hpp"
#include "two_members.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <string>
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

/// The member that is not the primary does what one does that has stepped down: it refuses writes, and answers reads
/// from the data that it had.
struct stale_member : two_members
{
    stale_member()
    {
        for (auto* const each : {&first, &second})
            each->say([this, each](const go_between::request& what) { return answer_of(*each, what); });
    }
    ~stale_member() { static_cast<void>(run(ours.shutdown(5s))); }

private:
    document answer_of(const go_between& by, const go_between::request& what)
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
    /// Without the times in it.
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

/// A server whose questions are noted.
struct noted_reads : mongo_scene
{
    struct note
    {
        int connection;
        std::string command;
        std::string text;
    };

    noted_reads() { run(run(ours.acquire("warm")).release(on_failure::raise)); }
    ~noted_reads()
    {
        between.be_honest();
        static_cast<void>(run(ours.shutdown(5s)));
    }

    /// \param refuse code that confirmations are refused with; 0: they are carried out
    void write_down(int refuse = 0)
    {
        written.clear();
        between.introduce([this](document said) {
            written.push_back({between.connection(), "hello", {}});
            return said;
        });
        between.say([this, refuse](const go_between::request& what) {
            written.push_back({between.connection(), std::string(what.command), what.text});
            if (refuse != 0 && what.text.find(confirmation) != std::string::npos)
                return refusal(refuse);
            return what.carry_out();
        });
    }
    [[nodiscard]] std::size_t count(std::string_view command) const
    {
        return static_cast<std::size_t>(std::ranges::count(written, command, &note::command));
    }
    [[nodiscard]] std::size_t count_confirmations() const
    {
        return static_cast<std::size_t>(std::ranges::count_if(
            written, [](const note& each) { return each.text.find(confirmation) != std::string::npos; }));
    }
    /// The last that were asked, on one connection.
    void check_last(const std::vector<std::string>& commands) const
    {
        BOOST_TEST_REQUIRE(written.size() >= commands.size());
        const auto from = written.end() - static_cast<std::ptrdiff_t>(commands.size());
        for (std::size_t i = 0; i < commands.size(); ++i) {
            const auto& each = from[static_cast<std::ptrdiff_t>(i)];
            BOOST_TEST(each.command == commands[i]);
            BOOST_TEST(each.connection == from->connection);
        }
        BOOST_TEST((written.back().text.find(confirmation) != std::string::npos), written.back().text);
    }

    go_between between{io, server->port()};
    const locker ours = add(options(mongodb_url(between.port())));
    const std::shared_ptr<adapter> backend = last;
    const locker theirs = add();
    std::vector<note> written;
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
    BOOST_TEST(told->suspensions == 1);
    // The next primary is greeted before each read, too.
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

BOOST_FIXTURE_TEST_SUITE(mongo_reads, noted_reads, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_negative_answer_is_confirmed_on_its_connection_after_it)
{
    write_down();
    BOOST_TEST(!run(ours.is_locked("k")));
    check_last({"hello", "find", "update"});
    BOOST_TEST(count("hello") == 1U);
    // Of a key with a document, too.
    BOOST_TEST(!run(ours.is_locked("warm")));
    check_last({"hello", "find", "update"});
    BOOST_TEST(run(ours.list({.key = "k"})).empty());
    check_last({"hello", "find", "update"});
}

BOOST_AUTO_TEST_CASE(a_positive_answer_needs_no_confirmation)
{
    auto held = run(theirs.acquire("k"));
    write_down();
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
    write_down();
    BOOST_TEST(run(ours.list()).size() == 1U);
    // Keys that are text, then those that are none.
    check_last({"hello", "find", "update"});
    BOOST_TEST(count("find") == 2U);
    BOOST_TEST(count("hello") == 2U);
    BOOST_TEST(count_confirmations() == 1U);
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(who_is_in_a_group_is_confirmed)
{
    auto members = theirs.group("g");
    run(members.acquire("k"));
    static_cast<void>(run(ours.list()));
    write_down();
    BOOST_TEST(run(ours.group("nobody's").release()).empty());
    check_last({"hello", "find", "find", "update"});
    write_down();
    BOOST_TEST(run(ours.group("g").release()).size() == 1U);
    BOOST_TEST(count_confirmations() == 1U);
}

BOOST_AUTO_TEST_CASE(many_reads_at_once_share_their_requests)
{
    constexpr std::size_t many = 50;
    auto held = run(theirs.acquire("k7"));
    write_down();
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
    written.clear();
    between.say([&](const go_between::request& what) {
        written.push_back({between.connection(), std::string(what.command), what.text});
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

BOOST_AUTO_TEST_CASE(what_is_not_confirmed_is_no_answer)
{
    const driver some(io, backend);
    for (const int code : {50, 11600, 462}) {
        for (const auto& ask : std::vector<std::function<void()>>{
                 [&] { static_cast<void>(run(ours.is_locked("k"))); },
                 [&] { static_cast<void>(run(ours.list())); },
             })
        {
            write_down(code);
            COLOCK_THROWS(error, errc::unavailable, ask());
            between.be_honest();
            BOOST_TEST(!run(ours.is_locked("k")));
        }
        write_down(code);
        BOOST_TEST(!!some.group("g", group_action::release).error);
        between.be_honest();
        BOOST_TEST(!run(ours.is_locked("k")));
    }
}

BOOST_AUTO_TEST_CASE(a_user_who_may_not_write_is_answered_without_confirmation_and_warned_once)
{
    auto held = run(theirs.acquire("held"));
    write_down(13);
    BOOST_TEST(!run(ours.is_locked("k")));
    BOOST_TEST(told->warned_of("not confirmed by a majority"));
    BOOST_TEST(run(ours.list()).size() == 1U);
    BOOST_TEST(run(ours.group("g").release()).empty());
    BOOST_TEST(!run(ours.is_locked("k")));
    BOOST_TEST(count_confirmations() == 4U);
    BOOST_TEST(told->warnings.size() == 1U);
    // What gives locks back is no read.
    const auto broken = run(backend->break_key("k"));
    BOOST_TEST_REQUIRE(!!broken.error);
    BOOST_TEST((broken.error->code == errc::access_denied));
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(every_other_negative_answer_is_confirmed_on_its_connection_too)
{
    const driver some(io, backend);
    for (const auto& claim : {driver::exclusive("k"), driver::shared("s")}) {
        some.grant(claim);
        BOOST_TEST(run(theirs.break_lock(claim->key())).size() == 1U);
        write_down();
        BOOST_TEST((some.extend(claim, 1h).status == extend_status::not_held));
        check_last({"findAndModify", "update"});
        some.check_not_held(claim);
        check_last({"findAndModify", "update"});
        BOOST_TEST((some.release(claim).status == release_status::not_held));
        check_last({"findAndModify", "update"});
        BOOST_TEST(some.break_key(claim->key()).empty());
        check_last({"hello", "find", "update"});
    }
}

BOOST_AUTO_TEST_CASE(a_document_that_a_full_reply_has_no_room_for_is_read_alone)
{
    // As large as many readers make it.
    for (const auto* const key : {"k1", "k2"}) {
        static_cast<void>(
            ask(R"({"update":"locks","updates":[{"q":{"_id":")" + std::string(key) +
                R"("},"u":{"t":"00000000000000000000000000000001","x":{"$numberLong":"9223372036854775807"},)"
                R"("f":{"$numberLong":"7"},"h":[],"hx":{"$numberLong":"0"},"o":{"comment":")" +
                std::string(400 * 1024, 'c') + R"("}},"upsert":true}]})"));
    }
    bool is_cut = false;
    between.say([&](const go_between::request& what) {
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
    between.be_honest();
    for (const auto* const key : {"k1", "k2"})
        BOOST_TEST(run(theirs.break_lock(key)).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
