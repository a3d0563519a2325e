// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "client.hpp"

#include "../../tools/built_backends.hpp"
#include "history.hpp"
#include "sabotage.hpp"

#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace prove {

namespace asio = boost::asio;
using colock::error_code;

namespace {

/// The message of the code, without its advice.
std::string name_of(const error_code& code)
{
    auto text = code.message();
    text.resize(std::min(text.find_first_of(",;:\"\\"), text.size()));
    return text;
}

/// Names of the holders, as the checker reads them.
std::vector<std::string> names_of(const std::vector<colock::lock_status>& holders)
{
    std::vector<std::string> names;
    names.reserve(holders.size());
    for (const auto& each : holders)
        names.push_back(each.key + ' ' + each.owner);
    return names;
}

class client
{
public:
    client(const settings& run, const client_settings& own, fenced_resources& resources)
        : run_(run), own_(own), resources_(resources), draw_(own.seed), history_(own.history),
          locker_(sabotaged(colock::make_adapter(io_.get_executor(), own.url, tools::built_backends()), run.sabotage),
              {.operation_timeout = operation_timeout}),
          supported_(colock::make_adapter(io_.get_executor(), own.url, tools::built_backends())->traits().capabilities)
    {
    }

    void run()
    {
        for (std::uint32_t n = 0; n < run_.workers; ++n)
            asio::co_spawn(io_, work(), [this](std::exception_ptr failure) { on_end(std::move(failure)); });
        io_.run();
        if (failure_)
            std::rethrow_exception(failure_);
    }

private:
    void on_end(std::exception_ptr failure)
    {
        if (failure)
            failure_ = std::move(failure);
        if (--running_ == 0)
            asio::co_spawn(io_, shut_down(), [this](std::exception_ptr problem) {
                if (problem)
                    failure_ = std::move(problem);
            });
    }

    asio::awaitable<void> shut_down()
    {
        const auto report = co_await locker_.shutdown(60s);
        history_.write(entry().add("shutdown", report.clean()).add("unproven", report.unproven));
        if (!report.clean())
            throw std::runtime_error("the shutdown was not clean");
    }

    asio::awaitable<void> sleep(milliseconds span)
    {
        colock::lease_timer timer(io_, span);
        co_await timer.async_wait(asio::use_awaitable);
    }

    /// Writes the start of a call. `call` also becomes the name of the owner of the locks that the call acquires.
    std::string begin(std::string_view what, entry details)
    {
        auto call = std::to_string(own_.process) + '-' + std::to_string(++calls_);
        history_.write(details.add("begin", what).add("call", call));
        return call;
    }
    void end(const std::string& call, std::string_view result, entry details = {})
    {
        history_.write(details.add("end", call).add("result", result));
    }
    /// Writes the end of the call if it fails.
    template <class T>
    asio::awaitable<T> guarded(std::string call, asio::awaitable<T> operation)
    {
        try {
            co_return co_await std::move(operation);
        } catch (const boost::system::system_error& failed) {
            end(call, name_of(failed.code()));
            throw;
        }
    }

    asio::awaitable<void> work()
    {
        ++running_;
        while (lease_clock::now() < own_.end) {
            bool has_failed = false;
            try {
                co_await step();
            } catch (const colock::error&) {
                has_failed = true;
            }
            // A call that fails at once must not fill the history.
            if (has_failed)
                co_await sleep(draw_.time_below(50ms));
        }
    }

    asio::awaitable<void> step()
    {
        const auto kind = draw_.below(100);
        if (kind < 8 && supported_.list)
            co_await query(draw_.below(run_.keys));
        else if (kind < 11 && supported_.list)
            co_await list();
        else if (kind < 12 && supported_.list)
            co_await purge();
        else if (kind < 13 && supported_.list)
            co_await break_lock();
        else
            co_await acquire();
    }

    asio::awaitable<void> query(std::uint32_t key)
    {
        const auto call = begin("is_locked", entry().add("key", run_.key(key)));
        const bool is_locked = co_await guarded(call, locker_.is_locked(run_.key(key)));
        end(call, is_locked ? "true" : "false");
    }
    asio::awaitable<void> list()
    {
        const auto call = begin("list", entry());
        const auto found = co_await guarded(call, locker_.list({.key_prefix = run_.key_prefix()}));
        end(call, "done", entry().add("found", names_of(found)));
    }
    asio::awaitable<void> purge()
    {
        const auto call = begin("purge", entry());
        const auto removed = co_await guarded(call, locker_.purge(draw_.once_in(2) ? 0 : 3));
        end(call, "done", entry().add("found", names_of(removed)));
    }
    /// Only the last key is broken, because the holders of a key that is broken are not sure of their locks.
    asio::awaitable<void> break_lock()
    {
        const auto key = run_.key(run_.keys - 1);
        const auto call = begin("break_lock", entry().add("key", key));
        const auto removed = co_await guarded(call, locker_.break_lock(key));
        end(call, "done", entry().add("found", names_of(removed)));
    }

    [[nodiscard]] colock::acquire_options draw_options(std::uint32_t key)
    {
        colock::acquire_options options{.ttl = 400ms + draw_.time_below(draw_.once_in(4) ? max_ttl - 400ms : 800ms)};
        if (own_.lasting_locks && supported_.no_ttl && draw_.once_in(8))
            options.ttl = 0ms;
        if (key != 0 && supported_.shared && draw_.once_in(3)) {
            options.mode = colock::lock_mode::shared;
            if (key == semaphore_key && supported_.semaphore)
                options.max_holders = max_holders;
        }
        if (draw_.once_in(2))
            options.renewal = colock::renewal::automatic;
        options.retry = draw_.once_in(2) ? colock::within(200ms + draw_.time_below(8s))
                                         : colock::retry_policy::fixed(50ms).times(40).jitter(0.3);
        return options;
    }
    /// Writes the start of an acquire, and sets the owner of the options.
    std::string begin_acquire(
        std::string_view what, const std::vector<std::string>& keys, colock::acquire_options& options)
    {
        auto call = begin(what, entry()
                                    .add("keys", keys)
                                    .add("shared", options.mode == colock::lock_mode::shared)
                                    .add("max_holders", options.max_holders)
                                    .add("ttl", options.ttl->count()));
        options.owner = call;
        return call;
    }
    void on_grant(const std::string& call, const colock::lock& held)
    {
        history_.write(entry()
                .add("held", call)
                .add("key", held.key())
                .add("fence", held.fence())
                .add("deadline", held.expires_at()));
        held.async_lost(asio::bind_executor(
            io_, [this, call, key = held.key()](const error_code& failed, colock::lost_reason reason) {
                if (!failed && reason != colock::lost_reason::released)
                    history_.write(entry().add("lost", call).add("key", key).add("reason", to_string(reason)));
            }));
    }
    /// Writes that the caller does not use the lock any more.
    void on_end_of_use(const std::string& call, const colock::lock& held)
    {
        history_.write(entry().add("left", call).add("key", held.key()).add("deadline", held.expires_at()));
    }

    asio::awaitable<void> acquire()
    {
        const auto number = draw_.below(run_.keys);
        const auto key = run_.key(number);
        auto options = draw_options(number);
        switch (draw_.below(7)) {
        case 0: {
            const auto call = begin_acquire("try_acquire", {key}, options);
            if (auto held = co_await guarded(call, locker_.try_acquire(key, options))) {
                end(call, "granted");
                co_await use(call, number, std::move(*held));
            } else {
                end(call, "busy");
            }
            break;
        }
        case 1: {
            const auto call = begin_acquire("acquire", {key}, options);
            const auto limit = draw_.time_below(draw_.once_in(2) ? 10ms : 400ms);
            auto [failed, held] = co_await locker_.async_acquire(
                key, options, asio::cancel_after(limit, asio::as_tuple(asio::use_awaitable)));
            end(call, failed ? name_of(failed) : "granted");
            if (!failed)
                co_await use(call, number, std::move(held));
            break;
        }
        case 2:
            co_await use_group(std::move(options));
            break;
        default: {
            const auto call = begin_acquire("acquire", {key}, options);
            auto held = co_await guarded(call, locker_.acquire(key, options));
            end(call, "granted");
            co_await use(call, number, std::move(held));
            break;
        }
        }
    }

    asio::awaitable<void> use_group(colock::acquire_options options)
    {
        std::vector<std::string> keys;
        for (std::uint32_t n = 0, first = draw_.below(run_.keys); n < std::min(run_.keys, 2U); ++n)
            keys.push_back(run_.key((first + n) % run_.keys));
        options.mode = colock::lock_mode::exclusive;
        options.max_holders = 0;
        const auto call = begin_acquire("acquire_all", keys, options);
        auto group = co_await guarded(call, locker_.acquire_all(keys, std::move(options)));
        end(call, "granted");
        for (const auto& each : group.locks())
            on_grant(call, each);
        co_await sleep(draw_.time_below(40ms));
        for (const auto& each : group.locks())
            on_end_of_use(call, each);
        if (draw_.once_in(3))
            co_return;
        const auto release = begin("release", entry().add("of", call));
        error_code failed;
        for (const auto& each : co_await guarded(release, group.release())) {
            if (each.status)
                failed = each.status;
        }
        end(release, failed ? name_of(failed) : "done");
    }

    asio::awaitable<void> use(std::string call, std::uint32_t number, colock::lock held)
    {
        on_grant(call, held);
        if (run_.sabotage == "early_release" && draw_.once_in(10)) {
            co_await held.release();
            co_await sleep(20ms);
            co_return;
        }
        co_await write_to_resource(call, number, held);
        co_await sleep(draw_.time_below(draw_.once_in(200) ? 2s : 5ms));
        if (held.held() && held.ttl() > 0ms && draw_.once_in(4))
            co_await extend(call, held);
        if (draw_.once_in(10))
            co_await ask(call, held);
        co_await write_to_resource(call, number, held);
        on_end_of_use(call, held);
        co_await give_back(std::move(call), number, std::move(held));
    }

    /// Only exclusive holders write. The write is delayed, as a request to another process is.
    asio::awaitable<void> write_to_resource(std::string call, std::uint32_t number, const colock::lock& held)
    {
        if (!supported_.fence || held.mode() == colock::lock_mode::shared)
            co_return;
        const auto write = begin("write", entry().add("of", call).add("key", held.key()).add("fence", held.fence()));
        co_await sleep(draw_.time_below(2ms));
        end(write, resources_.write(number, held.fence()) ? "accepted" : "rejected");
    }
    asio::awaitable<void> extend(std::string call, colock::lock& held)
    {
        const auto ttl = 1s + draw_.time_below(3s);
        const auto extend =
            begin("extend", entry().add("of", call).add("key", held.key()).add("ttl", milliseconds(ttl).count()));
        try {
            co_await guarded(extend, held.extend(ttl));
            end(extend, "done", entry().add("deadline", held.expires_at()));
        } catch (const colock::error&) {
            co_return;
        }
        co_await sleep(draw_.time_below(100ms));
    }
    asio::awaitable<void> ask(std::string call, const colock::lock& held)
    {
        const auto question = begin("is_held", entry().add("of", call).add("key", held.key()));
        try {
            const bool is_held = co_await guarded(question, held.is_locked());
            end(question, is_held ? "true" : "false", entry().add("deadline", held.expires_at()));
        } catch (const colock::error&) {
            co_return;
        }
    }

    asio::awaitable<void> give_back(std::string call, std::uint32_t number, colock::lock held)
    {
        // A lock without ttl would remain if the adoption failed.
        if (supported_.tickets && held.ttl() > 0ms && draw_.once_in(6)) {
            co_await move(std::move(call), number, std::move(held));
            co_return;
        }
        // The destructor releases the lock in the background.
        if (draw_.once_in(5))
            co_return;
        const auto release = begin("release", entry().add("of", call).add("key", held.key()));
        if (draw_.once_in(6)) {
            const auto limit = draw_.time_below(5ms);
            auto [failed] = co_await held.async_release(
                colock::on_failure::raise, asio::cancel_after(limit, asio::as_tuple(asio::use_awaitable)));
            end(release, failed ? name_of(failed) : "done");
            co_return;
        }
        co_await guarded(release, held.release(colock::on_failure::raise));
        end(release, "done");
    }

    /// Moves the lock to another owner of this process. Sometimes two callers use the ticket: one of them must fail.
    asio::awaitable<void> move(std::string call, std::uint32_t number, colock::lock held)
    {
        const auto key = held.key();
        const bool is_shared = held.mode() == colock::lock_mode::shared;
        const auto detach = begin("detach", entry().add("of", call).add("key", key));
        const auto ticket = co_await guarded(detach, held.detach());
        end(detach, "done");
        if (draw_.once_in(4)) {
            ++running_;
            asio::co_spawn(io_, adopt_and_ignore_errors(ticket, number, key, is_shared),
                [this](std::exception_ptr failure) { on_end(std::move(failure)); });
        }
        co_await sleep(draw_.time_below(20ms));
        co_await adopt(ticket, number, key, is_shared);
    }
    asio::awaitable<void> adopt_and_ignore_errors(
        std::string ticket, std::uint32_t number, std::string key, bool is_shared)
    {
        try {
            co_await adopt(std::move(ticket), number, std::move(key), is_shared);
        } catch (const colock::error&) {
            co_return;
        }
    }
    asio::awaitable<void> adopt(std::string ticket, std::uint32_t number, std::string key, bool is_shared)
    {
        colock::acquire_options options{.ttl = 1s + draw_.time_below(2s)};
        if (is_shared)
            options.mode = colock::lock_mode::shared;
        const auto call = begin_acquire("adopt", {std::move(key)}, options);
        auto held = co_await guarded(call, locker_.adopt(std::move(ticket), options));
        end(call, "granted");
        on_grant(call, held);
        co_await write_to_resource(call, number, held);
        co_await sleep(draw_.time_below(50ms));
        on_end_of_use(call, held);
        const auto release = begin("release", entry().add("of", call).add("key", held.key()));
        co_await guarded(release, held.release(colock::on_failure::raise));
        end(release, "done");
    }

    const settings& run_;
    const client_settings& own_;
    fenced_resources& resources_;
    random_numbers draw_;
    history history_;
    asio::io_context io_{1};
    colock::locker locker_;
    const colock::capabilities supported_;
    std::uint32_t running_ = 0;
    std::uint64_t calls_ = 0;
    std::exception_ptr failure_;
};

} // namespace

void run_client(const settings& run, const client_settings& own, fenced_resources& resources)
{
    client(run, own, resources).run();
}

} // namespace prove
