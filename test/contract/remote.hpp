// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "contract.hpp"

#include <colock/observer.hpp>
#include <colock/testing/remote_contract.hpp>

#include <array>
#include <functional>
#include <memory>
#include <ostream>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::contract {

std::ostream& operator<<(std::ostream& out, lost_part what);
inline constexpr std::array lost_parts{lost_part::request, lost_part::reply};

/// A fault that lasts until it is removed.
struct lasting_fault
{
    const char* name;
    void (*set)(remote_environment&, bool);
};
inline constexpr lasting_fault silence{"silence", [](remote_environment& env, bool set) { env.silence(set); }};
inline constexpr lasting_fault refusal{"refusal", [](remote_environment& env, bool set) { env.refuse(set); }};
inline constexpr lasting_fault death{"death", [](remote_environment& env, bool set) { env.serve(!set); }};
/// Faults of the link, during which other clients can use the server.
inline constexpr std::array link_faults{silence, refusal};
inline constexpr std::array all_faults{silence, refusal, death};

/// Records the events that an operator sees.
class event_recorder final : public observer
{
public:
    void ready(std::string_view) noexcept override { events.emplace_back("ready"); }
    void suspended(std::string_view, const error_code&) noexcept override { events.emplace_back("suspended"); }
    void reconnected(std::string_view) noexcept override { events.emplace_back("reconnected"); }
    void unreachable(std::string_view, const error_code& why, std::string_view, std::string_view) noexcept override
    {
        events.emplace_back("unreachable");
        causes.push_back(why);
    }
    void waiting(std::string_view) noexcept override { events.emplace_back("waiting"); }
    void at_risk(std::string_view, const error_code&) noexcept override { events.emplace_back("at_risk"); }
    void lost(std::string_view, lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        losses.push_back(reason);
    }

    [[nodiscard]] std::size_t count(std::string_view what) const;

    std::vector<std::string> events;
    std::vector<error_code> causes;
    std::vector<lost_reason> losses;
};

/// A fixture whose operations take time to end.
class waiting_fixture : public fixture
{
public:
    using where = std::source_location;
    using fixture::fixture;

    /// Lets time pass until `reached` returns true. Fails the test case after 30 times `short_ttl()`.
    void until(const std::function<bool()>& reached, where at = where::current());
    template <class T>
    T get(running<T> under_way, where at = where::current())
    {
        until([&] { return under_way.done(); }, at);
        return under_way.get(io(), at);
    }
    /// Runs an operation that takes time to end.
    template <class T>
    T run(asio::awaitable<T> coroutine, where at = where::current())
    {
        return get(testing::start(io(), std::move(coroutine)), at);
    }
    template <class T>
    [[nodiscard]] running<T> start(asio::awaitable<T> coroutine)
    {
        return testing::start(io(), std::move(coroutine));
    }
    /// Returns the error that the operation throws.
    template <class T>
    error failure_of(asio::awaitable<T> coroutine, where at = where::current())
    {
        return failure_of(start(std::move(coroutine)), at);
    }
    template <class T>
    error failure_of(running<T> under_way, where at = where::current())
    {
        try {
            static_cast<void>(get(std::move(under_way), at));
        } catch (const error& thrown) {
            return thrown;
        }
        BOOST_TEST_CONTEXT("called from " << at.file_name() << ":" << at.line())
        {
            BOOST_ERROR("it did not throw");
        }
        return {{}, {}};
    }
    /// Returns whether the context has no work left, so that `run()` would return.
    [[nodiscard]] bool out_of_work();
};

/// The fixture of a remote case. The operations that it inherits from `driver` use an adapter behind the link that
/// fails.
class remote_fixture : public waiting_fixture
{
public:
    remote_fixture(asio::io_context& io, remote_environment& backend_environment);

    [[nodiscard]] remote_environment& link() noexcept { return environment_; }
    /// Returns a driver whose link never fails. It acts as another process, and shows what the server stores.
    [[nodiscard]] const driver& direct_driver() const noexcept { return direct_driver_; }

    /// Operation timeout of the adapter behind the link. Operations last that long only if nothing passes the link.
    [[nodiscard]] std::chrono::milliseconds long_timeout() const { return short_ttl() * 14; }
    /// A shorter operation timeout, for cases that wait until an operation times out.
    [[nodiscard]] std::chrono::milliseconds short_timeout() const { return short_ttl() * 2 / 3; }
    /// Returns another driver behind the same link, with the short timeout.
    [[nodiscard]] driver make_short_timeout_driver();
    /// Options with a short retry delay, so that no case has to wait long.
    [[nodiscard]] static locker_options quick_retry() { return {.retry = retry_policy::fixed(20ms)}; }
    /// Makes a locker behind the link that fails.
    [[nodiscard]] locker make_linked_locker(locker_options options = quick_retry());
    /// Makes a locker behind the link that fails, with the short timeout for the adapter and the locker.
    [[nodiscard]] locker make_short_timeout_locker(locker_options options = {});
    /// Makes a locker behind the link that fails, with the short timeout for the locker and the long one for the
    /// adapter: its operations end before the adapter's.
    [[nodiscard]] locker make_locker_that_times_out_first();
    /// Makes a locker on a link that never fails.
    [[nodiscard]] locker make_direct_locker();

    /// Acquires and releases a lock, so that the connection and its one-time setup are complete.
    void warm_up();
    /// Waits until the server stores `expected` entries: it may still process a request that was sent before its link
    /// was cut. No handler of the test runs meanwhile.
    void check_stored(std::size_t expected, where at = where::current());
    /// Abandons the claim until the adapter promises that it holds nothing, as the core does for an unknown outcome.
    void settle(const claim_ptr& claim, where at = where::current());
    /// Abandons once. Returns true if the adapter promises that the claim holds nothing and never will.
    [[nodiscard]] bool abandon_once(const claim_ptr& claim);

    /// Called at the end of every case, when all faults are over. Checks that nothing is stored, and that nothing keeps
    /// the context running.
    void check_end();

private:
    remote_environment& environment_;
    std::vector<std::shared_ptr<adapter>> others_;
    driver direct_driver_;
};

[[nodiscard]] cases& remote_cases();

/// The fixture of a case with several servers. The operations that it inherits from `driver` use an adapter that
/// prefers the server which is paused.
class replicated_fixture : public waiting_fixture
{
public:
    replicated_fixture(asio::io_context& io, replicated_environment& backend_environment);

    void pause(bool paused) { environment_.pause(paused); }
    /// Returns a driver that uses the other servers. It acts as another process.
    [[nodiscard]] const driver& direct_driver() const noexcept { return direct_driver_; }
    /// Returns another driver that prefers the server which is paused.
    [[nodiscard]] driver make_linked_driver();
    /// Makes a locker that prefers the server which is paused.
    [[nodiscard]] locker make_linked_locker();

    /// Called at the end of every case, when the server is not paused any more.
    void check_end();

private:
    [[nodiscard]] std::chrono::milliseconds timeout() const { return short_ttl(); }

    replicated_environment& environment_;
    std::vector<std::shared_ptr<adapter>> others_;
    driver direct_driver_;
};

[[nodiscard]] cases& replicated_cases();

#define COLOCK_CASE_WITH_SERVERS(level, case_name, ...)                                                                \
    static void case_name##_body(level##_fixture& env);                                                                \
    COLOCK_CONTRACT_CASE(level, case_name __VA_OPT__(, ) __VA_ARGS__)                                                  \
    {                                                                                                                  \
        case_name##_body(static_cast<level##_fixture&>(env));                                                          \
    }                                                                                                                  \
    static void case_name##_body(level##_fixture& env)

/// COLOCK_REMOTE_CASE(name, needs...) { body; `env` is the fixture }
#define COLOCK_REMOTE_CASE(case_name, ...) COLOCK_CASE_WITH_SERVERS(remote, case_name __VA_OPT__(, ) __VA_ARGS__)
/// COLOCK_REPLICATED_CASE(name, needs...) { body; `env` is the fixture }
#define COLOCK_REPLICATED_CASE(case_name, ...)                                                                         \
    COLOCK_CASE_WITH_SERVERS(replicated, case_name __VA_OPT__(, ) __VA_ARGS__)

} // namespace colock::contract
