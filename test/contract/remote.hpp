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

/// A fault that lasts until it is taken back.
struct lasting_fault
{
    const char* name;
    void (*set)(remote_environment&, bool);
};
inline constexpr lasting_fault silence{"silence", [](remote_environment& on, bool set) { on.silence(set); }};
inline constexpr lasting_fault refusal{"refusal", [](remote_environment& on, bool set) { on.refuse(set); }};
inline constexpr lasting_fault death{"death", [](remote_environment& on, bool set) { on.serve(!set); }};
/// During which others go on.
inline constexpr std::array link_faults{silence, refusal};
inline constexpr std::array all_faults{silence, refusal, death};

/// What an operator hears.
class ears final : public observer
{
public:
    void ready(std::string_view) noexcept override { heard.emplace_back("ready"); }
    void suspended(std::string_view, const error_code&) noexcept override { heard.emplace_back("suspended"); }
    void reconnected(std::string_view) noexcept override { heard.emplace_back("reconnected"); }
    void unreachable(std::string_view, const error_code& why, std::string_view) noexcept override
    {
        heard.emplace_back("unreachable");
        causes.push_back(why);
    }
    void waiting(std::string_view) noexcept override { heard.emplace_back("waiting"); }
    void at_risk(std::string_view, const error_code&) noexcept override { heard.emplace_back("at_risk"); }
    void lost(std::string_view, lost_reason reason) noexcept override { losses.push_back(reason); }

    [[nodiscard]] std::size_t times(std::string_view what) const;

    std::vector<std::string> heard;
    std::vector<error_code> causes;
    std::vector<lost_reason> losses;
};

/// What a case works with: as a driver, the adapter behind the link that fails.
class remote_subject : public subject
{
public:
    using where = std::source_location;

    remote_subject(asio::io_context& io, remote_environment& surroundings);

    [[nodiscard]] remote_environment& link() noexcept { return surroundings_; }
    /// Its link is well: another process, and who sees what the server has.
    [[nodiscard]] const driver& witness() const noexcept { return witness_; }

    /// Operations end within it only where nothing passes.
    [[nodiscard]] std::chrono::milliseconds patience() const { return short_ttl() * 14; }
    /// A case may wait for an operation to end by itself.
    [[nodiscard]] std::chrono::milliseconds haste() const { return short_ttl() * 2 / 3; }
    /// Another one behind the same link, in haste.
    [[nodiscard]] driver hasty();
    /// Quick to try again, so that no case has to wait long.
    [[nodiscard]] static locker_options eager() { return {.retry = retry_policy::fixed(20ms)}; }
    /// Behind the link that fails.
    [[nodiscard]] locker make_linked_locker(locker_options options = eager());
    /// The same, with an adapter and an operation timeout in haste.
    [[nodiscard]] locker make_hasty_locker(locker_options options = {});
    /// Of which the adapter takes its time.
    [[nodiscard]] locker make_impatient_locker();
    /// On a link that is well.
    [[nodiscard]] locker make_direct_locker();

    /// Lets time pass until it is reached; for longer than anything may take that is due.
    void until(const std::function<bool()>& reached, where at = where::current());
    template <class T>
    T get(running<T> under_way, where at = where::current())
    {
        until([&] { return under_way.done(); }, at);
        return under_way.get(io(), at);
    }
    /// For what takes time to end.
    template <class T>
    T run(asio::awaitable<T> verb, where at = where::current())
    {
        return get(testing::start(io(), std::move(verb)), at);
    }
    template <class T>
    [[nodiscard]] running<T> start(asio::awaitable<T> verb)
    {
        return testing::start(io(), std::move(verb));
    }
    /// The error that it throws.
    template <class T>
    error failure_of(asio::awaitable<T> verb, where at = where::current())
    {
        return failure_of(start(std::move(verb)), at);
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

    /// A connection stands, and what it needs once is done.
    void warm_up();
    /// Waits for what a server is still writing that was sent before its link was cut; nothing of ours runs meanwhile.
    void check_stored(std::size_t expected, where at = where::current());
    /// As the core settles what it does not know the outcome of: until there is a promise.
    void settle(const claim_ptr& claim, where at = where::current());
    /// Abandons once. True: it is promised that the claim holds nothing and never will.
    [[nodiscard]] bool is_promised(const claim_ptr& claim);
    /// Whether the context would end `run()`.
    [[nodiscard]] bool out_of_work();

    /// Every case ends with this: all faults are over, nothing is stored, and nothing keeps the context.
    void check_end();

private:
    remote_environment& surroundings_;
    std::vector<std::shared_ptr<adapter>> others_;
    driver witness_;
};

[[nodiscard]] cases& remote_cases();

/// COLOCK_REMOTE_CASE(name, needs...) { body, with the remote_subject as `on` }
#define COLOCK_REMOTE_CASE(case_name, ...)                                                                             \
    static void case_name##_body(remote_subject& on);                                                                  \
    COLOCK_CONTRACT_CASE(remote, case_name __VA_OPT__(, ) __VA_ARGS__)                                                 \
    {                                                                                                                  \
        case_name##_body(static_cast<remote_subject&>(on));                                                            \
    }                                                                                                                  \
    static void case_name##_body(remote_subject& on)

} // namespace colock::contract
