// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/tally.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>

using namespace colock;
using namespace colock::quorum;

namespace colock::inline v0::quorum {

static std::ostream& operator<<(std::ostream& out, verdict value)
{
    constexpr const char* names[] = {"open", "yes", "no", "failed"};
    return out << names[static_cast<unsigned>(value)];
}

} // namespace colock::inline v0::quorum

namespace {

/// Returns the tally of these answers. `answers` has one letter for each node: y(es), n(o), a(way), u(nanswered),
/// r(efused), or '.', which has not answered yet.
tally tally_of(const std::string& answers)
{
    tally counted;
    counted.nodes = answers.size();
    for (const char each : answers) {
        switch (each) {
        case 'y':
            ++counted.yes;
            break;
        case 'n':
            ++counted.no;
            break;
        case 'a':
            counted.add_failure(make_failure(errc::unavailable, "away"));
            break;
        case 'u':
            counted.add_failure(make_failure(errc::outcome_unknown, "unanswered"));
            break;
        case 'r':
            counted.add_failure(make_failure(errc::access_denied, "refused"));
            break;
        default:
            break;
        }
    }
    return counted;
}

struct expected
{
    const char* answers;
    verdict create;
    verdict held;
    verdict release;
};

constexpr auto unclear = verdict::open, yes = verdict::yes, no = verdict::no, failed = verdict::failed;

// The columns are: create; extend and is_valid; release and abandon.
constexpr expected table[] = {
    {"...", unclear, unclear, unclear},
    {"y..", unclear, unclear, unclear},
    {"n..", unclear, unclear, unclear},
    {"a..", unclear, unclear, unclear},
    {"yy.", yes, yes, yes},
    {"nn.", no, no, no},
    {"yn.", unclear, unclear, unclear},
    {"ya.", unclear, unclear, unclear},
    // One busy answer is not enough, but the last node may add a second answer.
    {"na.", unclear, unclear, unclear},
    {"aa.", failed, failed, failed},
    {"uu.", failed, failed, failed},
    {"rr.", failed, failed, failed},
    {"yyy", yes, yes, yes},
    {"yyn", yes, yes, yes},
    {"yya", yes, yes, yes},
    {"ynn", no, no, no},
    {"nnn", no, no, no},
    {"nna", no, no, no},
    // A majority answered. The node that did not answer may have held the lock, too.
    {"yna", no, failed, yes},
    {"ynu", no, failed, yes},
    {"yaa", failed, failed, failed},
    {"naa", failed, failed, failed},
    {"nau", failed, failed, failed},
    {"aaa", failed, failed, failed},
    // Five nodes.
    {"yy...", unclear, unclear, unclear},
    {"yyy..", yes, yes, yes},
    {"nnn..", no, no, no},
    {"yynn.", unclear, unclear, unclear},
    {"yynna", no, failed, yes},
    {"nnaa.", unclear, unclear, unclear},
    {"ynaa.", unclear, failed, unclear},
    {"ynaaa", failed, failed, failed},
    {"aaa..", failed, failed, failed},
    {"naaa.", failed, failed, failed},
    {"ynnaa", no, failed, yes},
    {"nnnya", no, no, no},
};

} // namespace

BOOST_AUTO_TEST_SUITE(quorum_tally)

BOOST_AUTO_TEST_CASE(a_majority_decides_and_only_a_majority)
{
    for (const auto& row : table) {
        BOOST_TEST_CONTEXT(row.answers)
        {
            BOOST_TEST(judge_create(tally_of(row.answers)) == row.create);
            BOOST_TEST(judge_held(tally_of(row.answers)) == row.held);
            BOOST_TEST(judge_release(tally_of(row.answers)) == row.release);
        }
    }
}

BOOST_AUTO_TEST_CASE(no_verdict_is_open_once_all_have_answered)
{
    const std::string letters = "ynaur";
    for (std::size_t n = 0; n < 125; ++n) {
        const std::string answers{letters[n % 5], letters[n / 5 % 5], letters[n / 25]};
        BOOST_TEST_CONTEXT(answers)
        {
            for (const auto judge : {judge_create, judge_held, judge_release}) {
                const auto verdict_of_all = judge(tally_of(answers));
                BOOST_TEST(verdict_of_all != unclear);
                if (verdict_of_all == failed)
                    BOOST_TEST(tally_of(answers).failure());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(early_verdict_does_not_change)
{
    const std::string letters = "ynaur";
    for (std::size_t n = 0; n < 125; ++n) {
        const std::string answers{letters[n % 5], letters[n / 5 % 5], letters[n / 25]};
        for (std::size_t answered = 0; answered < 3; ++answered) {
            const auto early = answers.substr(0, answered) + std::string(3 - answered, '.');
            BOOST_TEST_CONTEXT(early << ", then " << answers)
            {
                const auto created = judge_create(tally_of(early));
                BOOST_TEST((created == unclear || created == judge_create(tally_of(answers))));
                const auto held = judge_held(tally_of(early));
                BOOST_TEST((held == unclear || held == judge_held(tally_of(answers))));
                const auto released = judge_release(tally_of(early));
                BOOST_TEST((released == unclear || released == judge_release(tally_of(answers))));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(failure_code_tells_whether_a_retry_makes_sense)
{
    const auto code = [](const char* answers) { return tally_of(answers).failure()->code; };
    BOOST_TEST(code("yaa") == errc::unavailable);
    BOOST_TEST(code("naa") == errc::unavailable);
    // An unanswered node alone cannot make a majority. A grant and an unanswered node can.
    BOOST_TEST(code("nau") == errc::unavailable);
    BOOST_TEST(code("yau") == errc::outcome_unknown);
    BOOST_TEST(code("auu") == errc::outcome_unknown);
    // Decided before the last node has answered: it may still say yes.
    BOOST_TEST(code("ua.") == errc::outcome_unknown);
    BOOST_TEST(code("aa.") == errc::unavailable);
    // After two refusals there can be no majority, whatever the third node says. After one refusal there can.
    BOOST_TEST(code("rra") == errc::access_denied);
    BOOST_TEST(code("rry") == errc::access_denied);
    BOOST_TEST(code("rya") == errc::unavailable);
    BOOST_TEST(code("ryn") == errc::unavailable);
    BOOST_TEST(tally_of("raa").failure()->detail == "3 of 3 masters failed: away");
    BOOST_TEST(tally_of("yau").failure()->detail == "2 of 3 masters failed: unanswered");
    BOOST_TEST(tally_of("nur").failure()->detail == "2 of 3 masters failed: unanswered");
}

BOOST_AUTO_TEST_CASE(first_failure_is_reported_with_its_cause)
{
    for (const auto code : {errc::unavailable, errc::outcome_unknown, errc::access_denied}) {
        tally counted;
        counted.nodes = 3;
        counted.add_failure(make_failure(code, "first", make_error_code(errc::shutting_down)));
        counted.add_failure(make_failure(code, "second", make_error_code(errc::lost)));
        const auto failure = counted.failure();
        BOOST_TEST(failure->code == code);
        BOOST_TEST(failure->detail == "2 of 3 masters failed: first");
        BOOST_TEST((failure->cause == errc::shutting_down));
    }
}

BOOST_AUTO_TEST_SUITE_END()
