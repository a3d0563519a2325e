// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

struct server_with_data_loss : one_server
{
    /// Timeout that is long enough for a session to survive the start of other servers on the same processors.
    static constexpr std::chrono::milliseconds session_timeout = 10s;

    /// Makes transactions that the server loses later.
    void make_transactions(const locker& by)
    {
        for (int i = 0; i < 50; ++i)
            run(run(by.acquire("other")).release(on_failure::raise));
    }
    /// Restarts the server with the data in `backup`; if empty, without data.
    void restore(const std::filesystem::path& backup = {})
    {
        server->kill();
        std::filesystem::remove_all(server->data() / "version-2");
        if (!backup.empty())
            std::filesystem::copy(backup, server->data() / "version-2", std::filesystem::copy_options::recursive);
        server->start();
        restored_at = lease_clock::now();
    }
    /// From now on the link closes each connection on which one of our sessions is resumed. A server does the same if
    /// it knows fewer transactions than the session has seen. New sessions pass.
    void refuse_sessions()
    {
        std::vector<std::string> refused;
        for (const auto each : sessions_of(server->port(), chroot()))
            refused.push_back(bytes_of_session(each));
        BOOST_TEST_REQUIRE(refused.size() == 1U);
        std::vector<std::pair<std::string, loss>> all(1000, {refused.front(), loss::request});
        link.refuse(true);
        link.cut_at_bytes_in_turn(std::move(all));
        link.refuse(false);
    }
    /// Makes a waiter whose place in the queue was confirmed. An unconfirmed request would be in doubt after the loss.
    running<lock> queue_and_confirm()
    {
        auto& by = add(session_timeout);
        auto waiting = queue(by);
        static_cast<void>(run(by.is_locked("k")));
        return waiting;
    }
    /// Checks that the waiter and then `by` are granted the lock within the documented time after the server's return.
    void check_granted(running<lock>& waiting, const locker& by)
    {
        auto next = waiting.get(io);
        BOOST_TEST((lease_clock::now() - restored_at < session_timeout + 5s));
        BOOST_TEST(run(next.is_locked()));
        run(next.release(on_failure::raise));
        run(run(by.acquire("k")).release(on_failure::raise));
    }

    lease_clock::time_point restored_at{};
};

/// A server whose data are replaced by an older copy, while others write so much that it resumes the sessions. Beats
/// are so rare that a test can act between two of them.
struct server_with_an_older_copy : server_with_data_loss
{
    static constexpr std::chrono::milliseconds long_timeout = 30s;

    server_with_an_older_copy()
    {
        server->kill();
        server->configure("maxSessionTimeout=60000\n");
        server->start();
        reader.emplace(server->port(), 10s, location{.chroot = chroot()});
        reader->connect();
        run(run(one.acquire("warm up")).release(on_failure::raise));
        until([&] {
            for (const auto& each : reader->children(".s").names()) {
                if (reader->exists(".s/" + each).stat.ephemeral_owner != reader->zk_session->life().id())
                    node_ = ".s/" + each;
            }
            return !node_.empty();
        });
    }
    /// Returns when the session of `one` has sent another beat.
    void await_beat()
    {
        const auto count = [&] {
            run_ready(*reader->io);
            return reader->exists(node_).stat.version;
        };
        const auto before = count();
        until([&] { return count() > before; });
    }
    void copy_data()
    {
        std::filesystem::copy(server->data() / "version-2", copy_, std::filesystem::copy_options::recursive);
    }
    /// Puts the copy back. `one` is connected again after others have made more transactions than were lost.
    void put_copy_back()
    {
        link.refuse(true);
        reader.reset();
        restore(copy_);
        for (int i = 0; i < 4; ++i)
            make_transactions(two);
        const auto before = events->reconnections;
        link.refuse(false);
        until([&] { return events->reconnections > before; });
    }
    void check_free(const std::string& key) { run(run(two.acquire(key)).release(on_failure::raise)); }

    locker& one = add_linked(long_timeout);
    locker& two = add(long_timeout);

private:
    std::string node_;
    std::optional<client> reader;
    const temporary_folder backup_;
    const std::filesystem::path copy_ = backup_ / "version-2";
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_history, server_with_data_loss)

BOOST_AUTO_TEST_CASE(server_without_its_data_is_used_in_a_new_session)
{
    auto& one = add(session_timeout);
    make_transactions(one);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto loss_event = start(io, held.lost());
    auto waiting = queue_and_confirm();
    restore();
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    check_granted(waiting, one);
    BOOST_TEST(events->warned_of("the servers have lost their history"));
    check_end();
}

/// The backup contains the old sessions, too: the server ends them after their timeout.
BOOST_AUTO_TEST_CASE(server_with_a_backup_of_its_data_is_used_in_a_new_session)
{
    auto& one = add(session_timeout);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto loss_event = start(io, held.lost());
    auto waiting = queue_and_confirm();
    const temporary_folder backup;
    const auto copy = backup / "version-2";
    server->kill();
    std::filesystem::copy(server->data() / "version-2", copy, std::filesystem::copy_options::recursive);
    server->start();
    until([&] { return events->reconnections == 2; });
    make_transactions(one);
    // Wait until both sessions have written: reads do not give a transaction number to compare.
    until([&, until = lease_clock::now() + 3s] { return lease_clock::now() > until; });
    BOOST_TEST(held.held());
    restore(copy);
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    check_granted(waiting, one);
    BOOST_TEST(events->warned_of("the servers have lost their history"));
    check_end();
}

BOOST_AUTO_TEST_CASE(request_without_an_answer_is_unproven_after_the_history_is_lost)
{
    const driver by(io, make_adapter(options(session_timeout, zookeeper_url(link.port()))));
    const auto other = driver::exclusive("other");
    for (int i = 0; i < 50; ++i) {
        by.grant(other);
        by.release_held(other);
    }
    const auto held = driver::exclusive("held");
    by.grant(held);
    const auto unknown = driver::one_attempt("unknown");
    link.cut_at_bytes("/unknown/", loss::delayed_reply);
    auto created = start(io, by.backend().create(sent_now(unknown)));
    until([&] { return link.cuts() == 1; });
    server->kill();
    link.refuse(true);
    BOOST_TEST((created.get(io).status == create_status::failed));
    link.refuse(false);
    restore();
    // The lock is granted in the next session.
    by.grant(driver::exclusive("another"));
    // The node of the granted claim, too, may be on a server with an older history.
    for (const auto& each : {unknown, held}) {
        const auto got = by.abandon(each);
        BOOST_TEST((got.status == release_status::failed));
        BOOST_TEST_REQUIRE(got.error);
        BOOST_TEST((got.error->code == errc::outcome_unknown));
    }
}

BOOST_AUTO_TEST_CASE(abandoned_acquire_is_settled_unproven_after_the_history_is_lost)
{
    auto& one = add_linked(session_timeout);
    make_transactions(one);
    link.cut_at_bytes("/unknown/", loss::delayed_reply);
    auto acquiring = start(io, one.acquire("unknown", {.retry = within(1s)}));
    until([&] { return link.cuts() == 1; });
    link.refuse(true);
    BOOST_CHECK_THROW(static_cast<void>(acquiring.get(io)), error);
    BOOST_TEST(one.stats().settling == 1U);
    restore();
    link.refuse(false);
    until([&] { return one.stats().settling == 0; });
    BOOST_TEST((lease_clock::now() - restored_at < session_timeout + 5s));
    BOOST_TEST(one.stats().unproven == 1U);
    run(run(one.acquire("unknown")).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(temporarily_refused_session_keeps_its_locks_if_the_history_is_kept)
{
    auto& one = add_linked(10s);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    client other(server->port());
    other.connect();
    const auto count_writes = [&] {
        run_ready(*other.io);
        return other
            .finish([&](reply_handler done) {
                other.zk_session->get_requests().read(chroot() + "/.clock", std::move(done));
            })
            .stat.version;
    };
    refuse_sessions();
    until([&] { return events->suspensions == 1; });
    // The client only checks the history, in another session.
    const auto before = count_writes();
    until([&] { return count_writes() > before; });
    BOOST_TEST(held.held());
    link.cut_at_any({}, loss::request);
    until([&] { return events->reconnections == 1; });
    BOOST_TEST(held.held());
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(events->warnings.empty());
    run(held.release(on_failure::raise));
    check_end();
}

/// The older copy contains the sessions, so the servers resume them once others have made enough transactions.
BOOST_AUTO_TEST_CASE(all_locks_that_an_older_copy_does_not_contain_are_lost)
{
    constexpr int count = 20;
    std::vector<locker*> all;
    for (int i = 0; i < count; ++i) {
        all.push_back(&add(session_timeout));
        run(run(all.back()->acquire("k" + std::to_string(i))).release(on_failure::raise));
    }
    const temporary_folder backup;
    const auto copy = backup / "version-2";
    std::filesystem::copy(server->data() / "version-2", copy, std::filesystem::copy_options::recursive);
    std::vector<lock> held;
    std::vector<running<lost_reason>> losses;
    for (int i = 0; i < count; ++i)
        held.push_back(run(all.at(static_cast<std::size_t>(i))->acquire("k" + std::to_string(i), {.ttl = 0ms})));
    for (auto& each : held)
        losses.push_back(start(io, each.lost()));
    restore(copy);
    for (auto& each : losses) {
        const auto reason = each.get(io);
        BOOST_TEST((reason == lost_reason::session || reason == lost_reason::taken));
    }
    for (int i = 0; i < count; ++i)
        run(run(all.front()->acquire("k" + std::to_string(i))).release(on_failure::raise));
    BOOST_TEST((lease_clock::now() - restored_at < session_timeout + 5s));
    check_end();
}

BOOST_FIXTURE_TEST_CASE(resumed_session_whose_beats_are_missing_is_lost, server_with_an_older_copy)
{
    const auto before = run(one.acquire("before", {.ttl = 0ms}));
    copy_data();
    const auto held = run(one.acquire("k", {.ttl = 0ms}));
    await_beat();
    auto loss_event = start(io, held.lost());
    put_copy_back();
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    BOOST_TEST(!before.held());
    BOOST_TEST(events->warned_of(
        "the servers have lost the newest writes of the session: their data were replaced by an older copy"));
    // The session was closed at the server, so the node that the copy contains blocks nobody.
    check_free("before");
    check_free("k");
    BOOST_TEST((lease_clock::now() - restored_at < long_timeout));
    check_end();
}

BOOST_FIXTURE_TEST_CASE(lock_that_was_granted_after_the_copied_beat_is_taken, server_with_an_older_copy)
{
    auto before = run(one.acquire("before", {.ttl = 0ms}));
    await_beat();
    copy_data();
    const auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto loss_event = start(io, held.lost());
    put_copy_back();
    BOOST_TEST((loss_event.get(io) == lost_reason::taken));
    check_free("k");
    BOOST_TEST(before.held());
    BOOST_TEST(run(before.is_locked()));
    run(before.release(on_failure::raise));
    check_end();
}

BOOST_FIXTURE_TEST_CASE(lock_that_was_released_after_the_copied_beat_is_free, server_with_an_older_copy)
{
    auto before = run(one.acquire("before", {.ttl = 0ms}));
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    await_beat();
    copy_data();
    run(held.release(on_failure::raise));
    put_copy_back();
    check_free("k");
    BOOST_TEST((lease_clock::now() - restored_at < long_timeout));
    BOOST_TEST(before.held());
    run(before.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
