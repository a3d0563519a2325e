// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/fencing.md for resources that need no server.

#include <colock/error.hpp>
#include <colock/fence_gate.hpp>
#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include "support/run.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sqlite3.h>

namespace asio = boost::asio;
using colock::testing::run_coro;

namespace {

//[ gate
// #include <colock/fence_gate.hpp>
// The guarded resource, in the process that owns it. Its members are called on one strand.
class shelf
{
public:
    bool put(const std::string& book, const std::string& key, std::uint64_t fence)
    {
        if (!gate_.admit(key, fence))
            return false; // a newer holder has written: the caller has lost the lock
        book_ = book;
        return true;
    }
    [[nodiscard]] const std::string& book() const noexcept { return book_; }

private:
    colock::fence_gate gate_;
    std::string book_;
};
//]

//[ sqlite
// CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER, fence INTEGER NOT NULL DEFAULT 0)
bool write_balance(sqlite3* to, const std::string& id, std::int64_t balance, std::uint64_t fence)
{
    sqlite3_stmt* prepared = nullptr;
    sqlite3_prepare_v2(
        to, "UPDATE account SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2", -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, &sqlite3_finalize);
    sqlite3_bind_int64(prepared, 1, balance);
    sqlite3_bind_int64(prepared, 2, static_cast<std::int64_t>(fence));
    sqlite3_bind_text(prepared, 3, id.c_str(), -1, SQLITE_TRANSIENT);
    if (sqlite3_step(prepared) != SQLITE_DONE)
        throw std::runtime_error(sqlite3_errmsg(to));
    return sqlite3_changes(to) == 1; // 0: there is no such account, or a newer holder has written
}
//]

/// Called while the interest is computed.
std::function<asio::awaitable<void>()> meanwhile;

asio::awaitable<std::int64_t> interest_of(std::int64_t balance)
{
    co_await asio::post(asio::deferred);
    if (const auto work = std::exchange(meanwhile, nullptr))
        co_await work();
    co_return balance / 10;
}

//[ sqlite_guarded
// Reads the balance and stores the fence in one step. From then on, writes with an older fence are refused. Without
// this step, a late write between the read and the write of a newer holder would be accepted, and then overwritten.
std::optional<std::int64_t> read_balance(sqlite3* from, const std::string& id, std::uint64_t fence)
{
    sqlite3_stmt* prepared = nullptr;
    sqlite3_prepare_v2(
        from, "UPDATE account SET fence = ?1 WHERE id = ?2 AND fence <= ?1 RETURNING balance", -1, &prepared, nullptr);
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, &sqlite3_finalize);
    sqlite3_bind_int64(prepared, 1, static_cast<std::int64_t>(fence));
    sqlite3_bind_text(prepared, 2, id.c_str(), -1, SQLITE_TRANSIENT);
    const int result = sqlite3_step(prepared);
    if (result == SQLITE_DONE)
        return std::nullopt; // there is no such account, or a newer holder has stored its fence
    if (result != SQLITE_ROW)
        throw std::runtime_error(sqlite3_errmsg(from));
    return sqlite3_column_int64(prepared, 0);
}

// The computation takes long, so one transaction for all of it would block the other users of the database.
asio::awaitable<void> add_interest(colock::locker locker, sqlite3* database, std::string id)
{
    co_await locker.with_lock("account:" + id, [&](colock::lock& held) -> asio::awaitable<void> {
        const auto balance = read_balance(database, id, held.fence());
        if (!balance)
            throw std::runtime_error("no such account, or the lock was lost before the read");
        const std::int64_t interest = co_await interest_of(*balance);
        if (!write_balance(database, id, *balance + interest, held.fence()))
            throw std::runtime_error("the lock was lost before the write");
    });
}
//]

/// Rolls back in the destructor, unless commit() was called.
class transaction
{
public:
    explicit transaction(sqlite3* of) : database_(of) { run("BEGIN IMMEDIATE"); }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction()
    {
        if (!is_committed_)
            sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
    void commit()
    {
        run("COMMIT");
        is_committed_ = true;
    }

private:
    void run(const char* statement) const
    {
        if (sqlite3_exec(database_, statement, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(database_));
    }

    sqlite3* database_;
    bool is_committed_ = false;
};

/// Takes time, like a call of another service.
asio::awaitable<bool> is_permitted(std::int64_t amount)
{
    if (meanwhile)
        co_await std::exchange(meanwhile, nullptr)();
    co_return amount < 1000;
}

//[ transfer
// A transfer in the other direction acquires the same two keys in the same order, so the two cannot deadlock.
asio::awaitable<void> transfer(
    colock::locker locker, sqlite3* database, std::string from, std::string to, std::int64_t amount)
{
    if (from == to || amount < 0)
        throw std::invalid_argument("not a transfer from one account to another");
    const std::string source = "account:" + from, target = "account:" + to;
    co_await locker.with_lock({source, target}, [&](colock::lock_group& both) -> asio::awaitable<void> {
        const auto source_fence = both.at(source).fence(), target_fence = both.at(target).fence();
        const auto source_balance = read_balance(database, from, source_fence);
        const auto target_balance = read_balance(database, to, target_fence);
        if (!source_balance || !target_balance)
            throw std::runtime_error("no such account, or a lock was lost before the read");
        if (*source_balance < amount || !co_await is_permitted(amount))
            throw std::runtime_error("the transfer is not possible");
        transaction both_or_none(database); // rolls back, unless it is committed
        if (!write_balance(database, from, *source_balance - amount, source_fence) ||
            !write_balance(database, to, *target_balance + amount, target_fence))
            throw std::runtime_error("a lock was lost before the write");
        both_or_none.commit();
    });
}
//]

asio::awaitable<colock::lock> take_over(colock::locker locker, std::string key)
{
    static_cast<void>(co_await locker.break_lock(key));
    co_return co_await locker.acquire(key);
}

/// Two holders that take the lock one after the other. The first is not notified that it has lost the lock.
struct two_holders
{
    asio::io_context io;
    colock::locker locker{colock::memory::make_adapter(io.get_executor())};
    colock::lock paused = run_coro(io, locker.acquire("k"));
    colock::lock next = run_coro(io, take_over(locker, "k"));
};

struct accounts
{
    accounts()
    {
        BOOST_TEST_REQUIRE(sqlite3_open(":memory:", &handle) == SQLITE_OK);
        run("CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER, fence INTEGER NOT NULL DEFAULT 0)");
        run("INSERT INTO account (id, balance) VALUES ('me', 1), ('you', 1)");
    }
    ~accounts() { sqlite3_close(handle); }

    void run(const char* statement) const
    {
        BOOST_TEST_REQUIRE(sqlite3_exec(handle, statement, nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    [[nodiscard]] std::string balances() const
    {
        std::string all;
        const auto note = [](void* to, int, char** columns, char**) {
            *static_cast<std::string*>(to) += std::string(columns[0]) + ' ';
            return 0;
        };
        sqlite3_exec(handle, "SELECT balance FROM account ORDER BY id", note, &all, nullptr);
        return all;
    }

    sqlite3* handle = nullptr;
};

} // namespace

BOOST_AUTO_TEST_SUITE(fencing_page)

BOOST_AUTO_TEST_CASE(gate_refuses_a_writer_that_lost_its_lock)
{
    const two_holders of;
    shelf guarded;
    BOOST_TEST(guarded.put("by the first", "k", of.paused.fence()));
    BOOST_TEST(guarded.put("by the second", "k", of.next.fence()));
    BOOST_TEST(!guarded.put("too late", "k", of.paused.fence()));
    BOOST_TEST(guarded.book() == "by the second");
}

BOOST_AUTO_TEST_CASE(sql_update_by_a_writer_that_lost_its_lock_changes_nothing)
{
    const two_holders of;
    const accounts database;
    BOOST_TEST(write_balance(database.handle, "me", 10, of.paused.fence()));
    BOOST_TEST(write_balance(database.handle, "me", 20, of.next.fence()));
    BOOST_TEST(!write_balance(database.handle, "me", 30, of.paused.fence()));
    BOOST_TEST(write_balance(database.handle, "me", 40, of.next.fence()));
    BOOST_TEST(write_balance(database.handle, "you", 50, of.paused.fence()));
    BOOST_TEST(!write_balance(database.handle, "nobody", 60, of.next.fence()));
    BOOST_TEST(database.balances() == "40 50 ");
}

BOOST_AUTO_TEST_CASE(sql_update_under_a_lock_fails_if_the_lock_was_lost)
{
    asio::io_context io;
    const auto store = colock::memory::make_adapter(io.get_executor());
    const colock::locker locker(store);
    const colock::locker other(store);
    const accounts database;
    database.run("UPDATE account SET balance = 100");
    run_coro(io, add_interest(locker, database.handle, "me"));
    BOOST_TEST(database.balances() == "110 100 ");
    BOOST_CHECK_THROW(run_coro(io, add_interest(locker, database.handle, "nobody")), std::runtime_error);

    // The lock is taken while the interest is computed. The next holder has read, and not yet written. The first one
    // ignores its cancellation, as a process that is paused does.
    colock::lock next;
    std::int64_t seen = 0;
    meanwhile = [&]() -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        next = co_await take_over(other, "account:me");
        seen = read_balance(database.handle, "me", next.fence()).value();
    };
    BOOST_CHECK_THROW(run_coro(io, add_interest(locker, database.handle, "me")), colock::lost_error);
    BOOST_TEST(database.balances() == "110 100 ");
    BOOST_TEST(write_balance(database.handle, "me", seen + 1, next.fence()));
    BOOST_TEST(database.balances() == "111 100 ");
}

BOOST_AUTO_TEST_CASE(transfer_changes_both_accounts_or_none)
{
    asio::io_context io;
    const auto store = colock::memory::make_adapter(io.get_executor());
    const colock::locker locker(store);
    const colock::locker other(store);
    const accounts database;
    database.run("UPDATE account SET balance = 100");
    run_coro(io, transfer(locker, database.handle, "me", "you", 30));
    BOOST_TEST(database.balances() == "70 130 ");
    BOOST_CHECK_THROW(run_coro(io, transfer(locker, database.handle, "me", "you", 71)), std::runtime_error);
    BOOST_CHECK_THROW(run_coro(io, transfer(locker, database.handle, "me", "nobody", 1)), std::runtime_error);
    BOOST_CHECK_THROW(run_coro(io, transfer(locker, database.handle, "me", "me", 1)), std::invalid_argument);
    BOOST_TEST(database.balances() == "70 130 ");

    // One of the two locks is taken before the writes. The transfer is not notified of it, as a process that is paused.
    meanwhile = [&]() -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        const auto next = co_await take_over(other, "account:you");
        static_cast<void>(read_balance(database.handle, "you", next.fence()));
    };
    BOOST_CHECK_THROW(run_coro(io, transfer(locker, database.handle, "me", "you", 1)), colock::lost_error);
    BOOST_TEST(database.balances() == "70 130 ");
}

BOOST_AUTO_TEST_CASE(opposite_transfers_do_not_deadlock)
{
    asio::io_context io;
    const colock::locker locker(colock::memory::make_adapter(io.get_executor()));
    const accounts database;
    database.run("UPDATE account SET balance = 100");
    for (const auto& [from, to] : {std::pair("me", "you"), std::pair("you", "me")})
        asio::co_spawn(io, transfer(locker, database.handle, from, to, 5), asio::detached);
    io.run();
    BOOST_TEST(database.balances() == "100 100 ");
}

BOOST_AUTO_TEST_SUITE_END()
