// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <ostream>
#include <string_view>
#include <vector>

namespace colock::testing {

std::ostream& operator<<(std::ostream& out, loss what)
{
    constexpr const char* names[] = {"request", "reply", "time"};
    return out << names[static_cast<unsigned>(what)];
}

namespace {

/// How any operation ended.
struct ending
{
    /// Granted, released, extended, valid, listed.
    bool success = false;
    failure_ptr failed{};
};

ending ending_of(create_outcome of)
{
    return {of.status == create_status::granted, std::move(of.error)};
}

ending ending_of(release_outcome of)
{
    return {of.status == release_status::released, std::move(of.error)};
}

ending ending_of(extend_outcome of)
{
    return {of.status == extend_status::extended, std::move(of.error)};
}

ending ending_of(valid_outcome of)
{
    return {of.valid, std::move(of.error)};
}

ending ending_of(list_outcome of)
{
    return {!of.locks.empty(), std::move(of.error)};
}

template <class Outcome>
asio::awaitable<ending> end_of(asio::awaitable<Outcome> operation)
{
    co_return ending_of(co_await std::move(operation));
}

/// Which form of a script travels when it is cut.
enum class form : unsigned char
{
    /// Its digest, and the server knows it. Also whatever is no script.
    known,
    /// Its digest, and the server does not know it.
    not_known,
    /// Its text.
    whole,
};

std::ostream& operator<<(std::ostream& out, form which)
{
    constexpr const char* names[] = {"known", "not known", "whole"};
    return out << names[static_cast<unsigned>(which)];
}

constexpr auto lock_name = "{colock}:k";
constexpr auto intent_name = "{colock}#w:k";
constexpr auto fence_name = "{colock}#fence";

/// A client behind a link that fails, and another one that sees the server as it is.
struct scene
{
    using action = std::function<void()>;

    scene(redis_server& shared, redis::options settings) : server(shared), between(shared.port())
    {
        server({"FLUSHALL"});
        redis::options direct;
        direct.url = shared.url();
        direct.layout = settings.layout;
        settings.url = between.url();
        // Nothing but what a test cuts is lost.
        settings.health_interval = 1min;
        // Whatever is still armed when all has been closed shows.
        settings.idle_timeout = direct.idle_timeout = 10min;
        some.emplace(std::move(settings));
        witness.emplace(some->io, redis::make_adapter(some->io.get_executor(), direct));
    }
    ~scene() { run_coro(some->io, witness->backend().close(1s)); }

    [[nodiscard]] asio::io_context& io() { return some->io; }
    [[nodiscard]] driver& speak() { return some->speak; }
    [[nodiscard]] adapter& backend() { return some->speak.backend(); }
    [[nodiscard]] bool has(std::string_view key) { return server({"EXISTS", key}) == "1"; }

    void open_connection()
    {
        const auto warm = driver::exclusive("warm");
        speak().grant(warm);
        speak().give_back(warm);
    }

    plain_claim_ptr ours(plain_claim_ptr added) { return own.emplace_back(std::move(added)); }
    plain_claim_ptr our_grant(plain_claim_ptr added)
    {
        speak().grant(added);
        return ours(std::move(added));
    }
    plain_claim_ptr their_grant(plain_claim_ptr added)
    {
        witness->grant(added);
        return others.emplace_back(std::move(added));
    }

    running<ending> create(const plain_claim_ptr& claim)
    {
        return start(io(), [](scene& on, plain_claim_ptr wanted) -> asio::awaitable<ending> {
            wanted->set_sent(lease_clock::now());
            auto outcome = ending_of(co_await on.backend().create(wanted));
            if (outcome.failed && outcome.failed->code == errc::outcome_unknown)
                on.taint(wanted);
            co_return outcome;
        }(*this, claim));
    }
    running<ending> hand_over(const plain_claim_ptr& held, const plain_claim_ptr& next)
    {
        return start(io(), [](scene& on, plain_claim_ptr from, plain_claim_ptr to) -> asio::awaitable<ending> {
            to->set_sent(lease_clock::now());
            auto outcome = co_await on.backend().hand_over(from, to);
            if (outcome.created.error)
                on.taint(to);
            // Whoever hears that one of them failed hears the same of the other.
            BOOST_TEST(!outcome.created.error == !outcome.released.error);
            co_return ending_of(std::move(outcome.created));
        }(*this, held, next));
    }
    template <class Outcome>
    running<ending> begin(asio::awaitable<Outcome> operation)
    {
        return start(io(), end_of(std::move(operation)));
    }

    void taint(const plain_claim_ptr& claim)
    {
        claim->taint();
        tainted.push_back(claim);
    }

    /// As the core settles: until there is a promise.
    void settle()
    {
        for (const auto& claim : own) {
            auto outcome = speak().abandon(claim);
            for (int i = 0; i < 10 && outcome.status == release_status::failed; ++i)
                outcome = speak().abandon(claim);
            BOOST_TEST((outcome.status != release_status::failed));
        }
        for (const auto& claim : tainted)
            BOOST_TEST(!claim->tainted());
        for (const auto& claim : others)
            witness->release(claim);
    }

    void check_nothing_left()
    {
        const auto left = server({"KEYS", "*"});
        BOOST_TEST((left.empty() || left == std::string(fence_name) + "\n"), left);
    }

    void check_usable()
    {
        for (const auto& claim : {driver::exclusive("after"), driver::shared("after")}) {
            if (claim->mode() == lock_mode::shared && !backend().capabilities().shared)
                continue;
            speak().grant(claim);
            BOOST_TEST((speak().extend(claim, 10s).status == extend_status::extended));
            speak().check_held(claim);
            speak().give_back(claim);
        }
    }

    /// Everything has come to an end when the context runs out of work.
    void check_nothing_hangs()
    {
        run_coro(io(), backend().close(5s));
        run_coro(io(), witness->backend().close(5s));
        io().restart();
        io().run_for(30s);
        BOOST_TEST(io().stopped());
    }

    redis_server& server;
    redis_relay between;
    std::optional<client_side> some;
    std::optional<driver> witness;
    std::vector<plain_claim_ptr> own;
    std::vector<plain_claim_ptr> others;
    std::vector<plain_claim_ptr> tainted;
    /// What travels with the operation.
    std::vector<running<ending>> together;
    /// Makes good what the operation's preparation broke.
    action repair{};
};

/// An operation, and the request of it that is cut.
struct cut_operation
{
    enum class kind : unsigned char
    {
        /// It ends in `outcome_unknown`, whatever became of it.
        one_request,
        /// The same, for a request that is a script's.
        script,
        /// The connection is lost before it is sent, and it goes out on the next one.
        connecting,
    };

    const char* name;
    kind cut;
    const char* word;
    /// Prepares, calls its second argument, and starts.
    std::function<running<ending>(scene&, const scene::action&)> start;
    /// Whether the server has carried it out.
    std::function<bool(scene&)> carried_out{};
    /// That of an operation that nothing cuts.
    bool success = true;
    redis::layout layout = redis::layout::standard;
};

void run_cut(redis_server& server, const cut_operation& what, form sent, std::optional<loss> lost)
{
    using kind = cut_operation::kind;
    redis::options settings;
    settings.layout = what.layout;
    settings.operation_timeout = lost == loss::time ? 3s : 20s;
    scene on(server, std::move(settings));
    if (what.cut != kind::connecting)
        on.open_connection();
    int before = 0;
    auto under_way = what.start(on, [&] {
        if (sent != form::known)
            server({"SCRIPT", "FLUSH"});
        before = on.between.cuts();
        if (lost)
            on.between.cut_at(sent == form::whole ? "EVAL" : what.word, *lost);
    });
    const auto ended = under_way.get(on.io());
    BOOST_TEST(on.between.cuts() - before == (lost ? 1 : 0));

    if (!lost || (what.cut == kind::connecting && lost != loss::time)) {
        BOOST_TEST(!ended.failed);
        BOOST_TEST(ended.success == what.success);
        BOOST_TEST((!what.carried_out || what.carried_out(on)));
    } else {
        const auto expected = what.cut == kind::connecting ? errc::unavailable : errc::outcome_unknown;
        BOOST_TEST_REQUIRE(ended.failed);
        BOOST_TEST(ended.failed->code == expected);
        const bool arrived = what.cut != kind::connecting && lost != loss::request && sent != form::not_known;
        BOOST_TEST((!what.carried_out || what.carried_out(on) == arrived));
    }
    on.between.deliver_replies();
    for (auto& each : on.together)
        static_cast<void>(each.get(on.io()));
    if (on.repair)
        on.repair();
    on.settle();
    on.check_nothing_left();
    on.check_usable();
    on.check_nothing_hangs();
}

std::vector<cut_operation> cut_operations()
{
    using kind = cut_operation::kind;
    using arm = scene::action;
    const auto locked = [](scene& on) { return on.has(lock_name); };
    const auto free = [](scene& on) { return !on.has(lock_name); };
    const auto extended = [](scene& on) { return std::stoll(on.server({"PTTL", lock_name})) > 100'000; };
    const auto two = [](scene& on) { return on.server({"ZCARD", lock_name}) == "2"; };
    const auto swept = [](scene& on) { return !on.has("{colock}:old"); };

    const auto create = [](plain_claim_ptr (*make)()) {
        return [make](scene& on, const arm& cut) {
            const auto claim = on.ours(make());
            cut();
            return on.create(claim);
        };
    };
    const auto exclusive = [] { return driver::exclusive("k", 60s); };
    const auto for_ever = [] { return driver::exclusive("k", 0s); };
    const auto shared = [] { return driver::shared("k", 0, 60s); };
    const auto semaphore = [] { return driver::shared("k", 3, 60s); };
    const auto second_attempt = [](scene& on, const arm& cut) {
        const auto holder = on.their_grant(driver::exclusive("k"));
        const auto claim = on.ours(driver::exclusive("k", 60s));
        on.speak().refuse(claim);
        on.witness->give_back(holder);
        cut();
        return on.create(claim);
    };
    const auto busy = [](plain_claim_ptr (*theirs)()) {
        return [theirs](scene& on, const arm& cut) {
            on.their_grant(theirs());
            const auto claim = on.ours(driver::exclusive("k", 60s));
            cut();
            return on.create(claim);
        };
    };
    const auto beside = [](plain_claim_ptr (*make)()) {
        return [make](scene& on, const arm& cut) {
            on.their_grant(make());
            const auto claim = on.ours(make());
            cut();
            return on.create(claim);
        };
    };
    const auto held = [](plain_claim_ptr (*make)(), running<ending> (*act)(scene&, const plain_claim_ptr&)) {
        return [make, act](scene& on, const arm& cut) {
            const auto claim = on.our_grant(make());
            cut();
            return act(on, claim);
        };
    };
    const auto release = [](scene& on, const plain_claim_ptr& claim) { return on.begin(on.backend().release(claim)); };
    const auto extend = [](scene& on, const plain_claim_ptr& claim) {
        claim->set_sent(lease_clock::now());
        return on.begin(on.backend().extend(claim, 300s));
    };
    const auto valid = [](scene& on, const plain_claim_ptr& claim) { return on.begin(on.backend().is_valid(claim)); };
    const auto of_all = [](asio::awaitable<list_outcome> (*walk)(adapter&)) {
        return [walk](scene& on, const arm& cut) {
            on.their_grant(driver::exclusive("k"));
            on.server({"ZADD", "{colock}:old", "1", std::string(32, 'a')});
            on.repair = [&on] { on.server({"DEL", "{colock}:old"}); };
            cut();
            return on.begin(walk(on.backend()));
        };
    };
    /// What is alone does not wait for others to travel with: this is, and what follows it is not.
    const auto occupied = [](scene& on) { on.together.push_back(on.begin(on.backend().purge(0))); };
    const auto list = [](adapter& backend) { return backend.list({}); };
    const auto purge = [](adapter& backend) { return backend.purge(0); };
    const auto inspect = [](adapter& backend) { return backend.inspect("k"); };
    const auto break_key = [](adapter& backend) { return backend.break_key("k"); };

    return {
        {"create", kind::one_request, "SET", create(exclusive), locked},
        {"create, cut at its second command", kind::one_request, "INCRBY", create(exclusive), locked},
        {"create without ttl", kind::one_request, "SET", create(for_ever), locked},
        {"create with an anchor", kind::one_request, "EVALSHA",
            [](scene& on, const arm& cut) {
                on.some->run_for(1100ms);
                const auto claim = on.ours(driver::exclusive("k", 60s));
                cut();
                return on.create(claim);
            },
            locked},
        {"a second attempt", kind::script, "EVALSHA", second_attempt, locked},
        {"busy", kind::script, "EVALSHA", busy(exclusive), {}, false},
        {"a writer's intent", kind::script, "EVALSHA", busy(shared), [](scene& on) { return on.has(intent_name); },
            false},
        {"create shared", kind::one_request, "SET", create(shared), locked},
        {"create shared beside another", kind::script, "EVALSHA", beside(shared), two},
        {"create of a semaphore beside another", kind::script, "EVALSHA", beside(semaphore), two},
        {"a reader gives way", kind::one_request, "EVAL",
            [](scene& on, const arm& cut) {
                const auto claim = on.ours(driver::shared("k", 0, 60s));
                on.server({"SET", intent_name, std::string(32, 'a'), "PX", "60000"});
                on.repair = [&on] { on.server({"DEL", intent_name}); };
                cut();
                return on.create(claim);
            },
            free, false},
        {"lifting the fence", kind::one_request, "EVAL",
            [](scene& on, const arm& cut) {
                const auto claim = on.ours(driver::exclusive("k", 60s));
                on.server({"DEL", fence_name});
                cut();
                return on.create(claim);
            },
            [](scene& on) { return std::stoll(on.server({"GET", fence_name})) > 1'600'000'000'000'000; }},
        {"hand over", kind::script, "EVALSHA",
            [](scene& on, const arm& cut) {
                const auto holder = on.our_grant(driver::exclusive("k", 60s));
                const auto next = on.ours(driver::exclusive("k", 60s));
                cut();
                return on.hand_over(holder, next);
            },
            [](scene& on) { return on.server({"GET", lock_name}).starts_with(on.own.back()->token().hex()); }},
        {"hand over with another", kind::script, "EVALSHA",
            [occupied](scene& on, const arm& cut) {
                const auto holder = on.our_grant(driver::exclusive("k", 60s));
                const auto other = on.our_grant(driver::exclusive("other", 60s));
                const auto next = on.ours(driver::exclusive("k", 60s));
                const auto next_other = on.ours(driver::exclusive("other", 60s));
                cut();
                occupied(on);
                auto ours = on.hand_over(holder, next);
                on.together.push_back(on.hand_over(other, next_other));
                return ours;
            },
            [](scene& on) { return on.server({"GET", lock_name}).starts_with(on.own[2]->token().hex()); }},
        {"release with another", kind::script, "EVALSHA",
            [occupied, release](scene& on, const arm& cut) {
                const auto other = on.our_grant(driver::exclusive("other", 60s));
                const auto claim = on.our_grant(driver::exclusive("k", 60s));
                cut();
                occupied(on);
                auto ours = release(on, claim);
                on.together.push_back(release(on, other));
                return ours;
            },
            [](scene& on) { return !on.has(lock_name) && !on.has("{colock}:other"); }},
        {"release", kind::script, "EVALSHA", held(exclusive, release), free},
        {"release shared", kind::script, "EVALSHA", held(shared, release), free},
        {"release shared beside another", kind::script, "EVALSHA",
            [release](scene& on, const arm& cut) {
                on.their_grant(driver::shared("k", 0, 60s));
                const auto claim = on.our_grant(driver::shared("k", 0, 60s));
                cut();
                return release(on, claim);
            },
            [](scene& on) { return on.server({"ZCARD", lock_name}) == "1"; }},
        {"withdraw", kind::script, "EVALSHA",
            [](scene& on, const arm& cut) {
                on.their_grant(driver::shared("k"));
                const auto claim = on.ours(driver::exclusive("k", 60s));
                on.speak().refuse(claim);
                BOOST_TEST(on.has(intent_name));
                cut();
                return on.begin(on.backend().abandon(claim));
            },
            [](scene& on) { return !on.has(intent_name); }, false},
        {"extend", kind::script, "EVALSHA", held(exclusive, extend), extended},
        {"extend shared", kind::script, "EVALSHA", held(shared, extend), extended},
        {"valid", kind::script, "EVALSHA", held(exclusive, valid)},
        {"valid shared", kind::script, "EVALSHA", held(shared, valid)},
        {"inspect", kind::script, "EVALSHA", of_all(inspect)},
        {"break", kind::script, "EVALSHA", of_all(break_key), free},
        {"list, its pages", kind::one_request, "SCAN", of_all(list)},
        {"list, what they hold", kind::script, "EVALSHA", of_all(list)},
        {"purge, its pages", kind::one_request, "SCAN", of_all(purge)},
        {"purge", kind::script, "EVALSHA", of_all(purge), swept},
        {"the greeting", kind::connecting, "HELLO", create(exclusive), locked},
        {"the server's state", kind::connecting, "INFO", create(exclusive), locked},
        {"the first anchor", kind::connecting, "EVAL", create(exclusive), locked},
        {"plain create", kind::one_request, "SET", create(exclusive), [](scene& on) { return on.has("k"); }, true,
            redis::layout::plain},
        {"plain, a second attempt", kind::script, "EVALSHA", second_attempt, [](scene& on) { return on.has("k"); },
            true, redis::layout::plain},
        {"plain, busy", kind::script, "EVALSHA", busy(exclusive), {}, false, redis::layout::plain},
        {"plain release", kind::script, "EVALSHA", held(exclusive, release), [](scene& on) { return !on.has("k"); },
            true, redis::layout::plain},
    };
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_cuts)

BOOST_AUTO_TEST_CASE(whatever_is_cut_is_told_truly_and_settled)
{
    redis_server server;
    for (const auto& what : cut_operations()) {
        BOOST_TEST_CONTEXT(what.name)
        {
            run_cut(server, what, form::known, std::nullopt);
        }
        // What was not cut has made the scripts known.
        for (const auto sent : {form::known, form::not_known, form::whole}) {
            if (sent != form::known && what.cut != cut_operation::kind::script)
                continue;
            for (const auto lost : {loss::request, loss::reply}) {
                BOOST_TEST_CONTEXT(what.name << ", script " << sent << ", loses " << lost)
                {
                    run_cut(server, what, sent, lost);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_reply_that_comes_too_late_disturbs_nothing)
{
    // Each takes as long as an operation may.
    constexpr std::array some{"create", "a second attempt", "create shared", "hand over", "release", "extend",
        "list, its pages", "plain create", "the greeting"};
    redis_server server;
    for (const auto& what : cut_operations()) {
        if (std::ranges::find(some, std::string_view(what.name)) == some.end())
            continue;
        BOOST_TEST_CONTEXT(what.name)
        {
            run_cut(server, what, form::known, std::nullopt);
            run_cut(server, what, form::known, loss::time);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cut_in_the_middle_of_settling_is_settled)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            scene on(server, {.operation_timeout = 20s});
            on.open_connection();
            const auto claim = on.ours(driver::exclusive("k", 60s));
            on.between.cut_at("SET", loss::reply);
            BOOST_TEST((on.create(claim).get(on.io()).failed->code == errc::outcome_unknown));
            BOOST_TEST(on.has(lock_name));
            on.between.cut_at("KILL", lost);
            BOOST_TEST((on.speak().abandon(claim).status == release_status::released));
            BOOST_TEST(on.between.cuts() == 2);
            BOOST_TEST(!on.has(lock_name));
            on.settle();
            on.check_nothing_left();
            on.check_usable();
            on.check_nothing_hangs();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_grant_without_a_fence_is_taken_back_whatever_is_cut)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            scene on(server, {.operation_timeout = 20s});
            on.open_connection();
            const auto claim = on.ours(driver::exclusive("k", 60s));
            server({"SET", fence_name, "no number"});
            on.between.cut_at("EVAL", lost);
            BOOST_TEST((on.create(claim).get(on.io()).failed->code == errc::outcome_unknown));
            BOOST_TEST(on.between.cuts() == 1);
            BOOST_TEST(on.has(lock_name) == (lost == loss::request));
            server({"DEL", fence_name});
            on.settle();
            on.check_nothing_left();
            on.check_usable();
            on.check_nothing_hangs();
        }
    }
}

/// One waits on "k" for another who releases it only after the cut; nothing but a message, or a look at the right
/// moment, can tell.
void wait_through_cut(redis_server& server, const char* word, loss lost, const std::function<void(scene&)>& before)
{
    scene on(server, {.operation_timeout = 20s});
    on.open_connection();
    const auto holder = on.their_grant(driver::exclusive("k", 60s));
    const auto claim = on.ours(driver::exclusive("k", 60s));
    before(on);
    on.between.cut_at(word, lost);
    auto waiting = start(on.io(), acquire(on.speak().shared_backend(), claim));
    run_until(on.io(), [&] { return on.between.cuts() == 1; });
    BOOST_TEST(!waiting.done());
    on.witness->give_back(holder);
    BOOST_TEST(waiting.get(on.io()) > 0u);
    on.speak().check_held(claim);
    on.settle();
    on.check_nothing_left();
    on.check_usable();
    on.check_nothing_hangs();
}

BOOST_AUTO_TEST_CASE(a_waiter_is_woken_whatever_is_cut_of_its_subscription)
{
    redis_server server;
    for (const auto* const word : {"HELLO", "SUBSCRIBE"}) {
        for (const auto lost : {loss::request, loss::reply}) {
            BOOST_TEST_CONTEXT(word << ", loses " << lost)
            {
                wait_through_cut(server, word, lost, [](scene&) {});
            }
        }
    }
    // One subscription more, on a connection that has others.
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("a second subscription, loses " << lost)
        {
            wait_through_cut(server, "SUBSCRIBE", lost, [](scene& on) {
                on.their_grant(driver::exclusive("other", 60s));
                const auto waiter = on.ours(driver::exclusive("other", 60s));
                on.speak().refuse(waiter);
                static_cast<void>(start(on.io(), on.backend().wait(waiter, lease_clock::time_point::max())));
                run_until(on.io(),
                    [&] { return on.server({"PUBSUB", "NUMSUB", "{colock}:other"}) == "{colock}:other\n1\n"; });
            });
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cut_in_the_middle_of_unsubscribing_disturbs_no_other_waiter)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            scene on(server, {.operation_timeout = 20s});
            const auto first = on.their_grant(driver::exclusive("k", 60s));
            const auto second = on.their_grant(driver::exclusive("other", 60s));
            const auto claim = on.ours(driver::exclusive("k", 60s));
            const auto other = on.ours(driver::exclusive("other", 60s));
            auto waiting = start(on.io(), acquire(on.speak().shared_backend(), claim));
            auto longer = start(on.io(), acquire(on.speak().shared_backend(), other));
            run_until(on.io(), [&] {
                return server({"PUBSUB", "NUMSUB", lock_name, "{colock}:other"}) ==
                       "{colock}:k\n1\n{colock}:other\n1\n";
            });
            on.between.cut_at("UNSUBSCRIBE", lost);
            on.witness->give_back(first);
            waiting.get(on.io());
            run_until(on.io(), [&] { return on.between.cuts() == 1; });
            BOOST_TEST(!longer.done());
            on.witness->give_back(second);
            longer.get(on.io());
            on.settle();
            on.check_nothing_left();
            on.check_nothing_hangs();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
