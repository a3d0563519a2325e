// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/strand.hpp>
#include <boost/system/system_error.hpp>

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace asio = boost::asio;

//[ adapter
// Locks between the processes of one machine, in a table of SQLite. Expiries are times of lease_clock, which all
// processes of a machine share until it restarts, so the file belongs into a folder such as /run. A statement blocks
// its thread while another process writes.
class sqlite_adapter : public colock::awaitable_adapter
{
public:
    sqlite_adapter(const asio::any_io_executor& executor, const std::string& path)
        : awaitable_adapter(asio::make_strand(executor)), database_(nullptr, &sqlite3_close)
    {
        sqlite3* opened = nullptr;
        sqlite3_open(path.c_str(), &opened);
        database_.reset(opened);
        sqlite3_busy_timeout(opened, 1000);
        constexpr auto table = "PRAGMA synchronous = OFF; " // No lock survives a restart of the machine.
                               "CREATE TABLE IF NOT EXISTS locks (key PRIMARY KEY, token, expires, fence)";
        if (sqlite3_exec(opened, table, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(path + ": " + sqlite3_errmsg(opened));
    }

    colock::adapter_traits traits() const noexcept override
    {
        return {.name = "sqlite", .capabilities = {.fence = true}};
    }

protected:
    // A repeated create finds its own grant. The row of a released lock stays, because it contains the fence.
    asio::awaitable<colock::create_outcome> do_create(colock::claim_ptr claim) override
    {
        constexpr auto take = "INSERT INTO locks VALUES (?1, ?2, ?4, 1) ON CONFLICT (key) DO UPDATE "
                              "SET token = ?2, expires = ?4, fence = fence + (token <> ?2 OR expires <= ?3) "
                              "WHERE token = ?2 OR expires <= ?3 RETURNING fence";
        if (const auto fence = execute(take, *claim, claim->ttl()))
            co_return colock::create_outcome::granted(static_cast<std::uint64_t>(*fence));
        const auto left = execute("SELECT expires - ?3 FROM locks WHERE key = ?1 AND expires > ?3", *claim);
        co_return colock::create_outcome::busy(colock::lease_clock::duration(left.value_or(0)));
    }
    asio::awaitable<colock::release_outcome> do_release(colock::claim_ptr claim, colock::release_guarantee) override
    {
        using enum colock::release_status;
        constexpr auto end = "UPDATE locks SET expires = 0 WHERE key = ?1 AND token = ?2 AND expires > ?3 RETURNING 1";
        co_return colock::release_outcome{execute(end, *claim) ? released : not_held};
    }
    asio::awaitable<colock::extend_outcome> do_extend(colock::claim_ptr claim, std::chrono::milliseconds ttl) override
    {
        using enum colock::extend_status;
        constexpr auto set = "UPDATE locks SET expires = ?4 WHERE key = ?1 AND token = ?2 AND expires > ?3 RETURNING 1";
        co_return colock::extend_outcome{execute(set, *claim, ttl) ? extended : not_held};
    }
    asio::awaitable<colock::valid_outcome> do_is_valid(colock::claim_ptr claim) override
    {
        constexpr auto find = "SELECT 1 FROM locks WHERE key = ?1 AND token = ?2 AND expires > ?3";
        co_return colock::valid_outcome{execute(find, *claim).has_value()};
    }

private:
    // Executes a statement with the parameters key, token, now and expiry. Returns the number in its row, if any.
    std::optional<std::int64_t> execute(const char* sql, const colock::claim& claim, std::chrono::milliseconds ttl = {})
    {
        const auto token = claim.token().hex();
        const auto now = colock::lease_clock::now();
        sqlite3_stmt* prepared = nullptr;
        sqlite3_prepare_v2(database_.get(), sql, -1, &prepared, nullptr);
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, &sqlite3_finalize);
        sqlite3_bind_blob(prepared, 1, claim.key().data(), static_cast<int>(claim.key().size()), nullptr);
        sqlite3_bind_text(prepared, 2, token.data(), static_cast<int>(token.size()), nullptr);
        sqlite3_bind_int64(prepared, 3, now.time_since_epoch().count());
        sqlite3_bind_int64(prepared, 4, colock::saturating_add(now, ttl).time_since_epoch().count());
        std::optional<std::int64_t> result;
        int code = sqlite3_step(prepared);
        for (; code == SQLITE_ROW; code = sqlite3_step(prepared))
            result = sqlite3_column_int64(prepared, 0);
        if (code == SQLITE_BUSY)
            throw boost::system::system_error(colock::errc::unavailable);
        if (code != SQLITE_DONE)
            throw std::runtime_error(sqlite3_errmsg(database_.get()));
        return result;
    }

    std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
};
//]
