// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/fencing.md for resources that need no server.

#include <colock/fence_gate.hpp>
#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include "support/run.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
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

/// Two holders that take the lock one after the other. The first is not notified that it has lost the lock.
struct two_holders
{
    asio::io_context io;
    colock::locker locker{colock::memory::make_adapter(io.get_executor())};
    colock::lock paused = run_coro(io, locker.acquire("k"));
    colock::lock next = take_over();

    colock::lock take_over()
    {
        static_cast<void>(run_coro(io, locker.break_lock("k")));
        return run_coro(io, locker.acquire("k"));
    }
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

BOOST_AUTO_TEST_SUITE_END()
