// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/testing/adapter_contract.hpp>
#include <colock/testing/remote_contract.hpp>

#include "contract.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/make_shared.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

namespace colock::contract {

keys keys_of(const std::vector<lock_status>& statuses)
{
    keys all;
    for (const auto& status : statuses)
        all.insert(status.key);
    return all;
}

cases& adapter_cases()
{
    static cases all;
    return all;
}

cases& locker_cases()
{
    static cases all;
    return all;
}

namespace ut = boost::unit_test;

namespace {

/// Fails the test case if the events of a backend arrive in an order that contradicts itself. Such an order comes from
/// an adapter that calls the functions of its `contact` in a wrong order.
class event_order final : public observer
{
public:
    void ready(std::string_view) noexcept override
    {
        check(!was_ready_, "ready is reported twice");
        was_ready_ = true;
        is_lost_ = false;
    }
    void unreachable(std::string_view, const error_code&, std::string_view, std::string_view) noexcept override
    {
        is_lost_ = true;
    }
    void suspended(std::string_view, const error_code&) noexcept override
    {
        check(was_ready_, "suspended is reported before ready");
        check(!is_suspended_, "suspended is reported twice without reconnected in between");
        is_lost_ = true;
        is_suspended_ = true;
    }
    void reconnected(std::string_view) noexcept override
    {
        check(was_ready_, "reconnected is reported before ready");
        check(is_lost_, "reconnected is reported without suspended or unreachable before");
        is_lost_ = false;
        is_suspended_ = false;
    }

private:
    static void check(bool is_valid, const char* mistake) noexcept
    {
        if (!is_valid)
            BOOST_ERROR(mistake);
    }

    bool was_ready_ = false;
    bool is_lost_ = false;
    bool is_suspended_ = false;
};

} // namespace

fixture::fixture(asio::io_context& io, environment& backend_environment)
    : fixture(io, backend_environment, backend_environment.make())
{
}

fixture::fixture(asio::io_context& io, environment& backend_environment, std::shared_ptr<adapter> tested)
    : driver(io, std::move(tested)), environment_(backend_environment)
{
    watch_events(shared_backend());
}

std::shared_ptr<adapter> fixture::watch_events(std::shared_ptr<adapter> watched)
{
    watched->attach(event_checks_.emplace_back(std::make_shared<event_order>()));
    return watched;
}

locker fixture::make_locker(locker_options options) const
{
    return locker(shared_backend(), std::move(options));
}

locker fixture::make_other_locker(locker_options options)
{
    return locker(watch_events(environment_.make()), std::move(options));
}

void fixture::check_nothing_left()
{
    testing::run_ready(io());
    // Operations that were started in the background may still be in flight. The wait is short, so that the expiry of a
    // lock does not hide that the lock was left behind.
    for (int i = 0; i < 40 && !list().empty(); ++i)
        pass_time(short_ttl() / 100);
    for (const auto& left : list())
        BOOST_ERROR("left behind: " << left.key);
}

namespace {

constexpr std::pair<contract_case::need, const char*> need_names[] = {
    {&capabilities::shared, "shared locks"},
    {&capabilities::semaphore, "semaphores"},
    {&capabilities::no_ttl, "locks without ttl"},
    {&capabilities::fifo, "queue"},
    {&capabilities::fence, "fences"},
    {&capabilities::list, "lists"},
    {&capabilities::lists_fence, "fences in its lists"},
    {&capabilities::events, "events"},
    {&capabilities::create_all, "creates of several locks in one step"},
    {&capabilities::groups, "groups by their id"},
    {&capabilities::extends_groups, "extensions of a group by its id"},
    {&capabilities::tickets, "tickets"},
    {&capabilities::expires, "grants that it ends by itself"},
};

boost::test_tools::assertion_result report_skip(const ut::test_unit& unit, const std::string& why)
{
    // Boost.Test does not report a skipped case at its usual log level.
    std::cout << "skipped: " << unit.full_name() << ": " << why << std::endl;
    boost::test_tools::assertion_result no(false);
    no.message() << why;
    return no;
}

void run(const backend& tested, const contract_case& which)
{
    asio::io_context io;
    const auto backend_environment = tested.make_environment(io);
    fixture env(io, *backend_environment);
    check_declared_capabilities(tested.name, tested.capabilities, env.capabilities());
    which.body(env);
    if (env.capabilities().list)
        env.check_nothing_left();
}

/// Generates a test suite. Boost.Test evaluates it after the construction of all static objects, so that no case can be
/// missed.
class suite final : public ut::test_unit_generator
{
public:
    suite(std::string name, const capabilities& supported, std::function<std::string()> skip_reason,
        const cases& contents, std::function<void(const contract_case&)> run)
        : name_(std::move(name)), supported_(supported), skip_reason_(std::move(skip_reason)), contents_(contents),
          run_(std::move(run))
    {
    }
    virtual ~suite() = default;

    ut::test_unit* next() const override
    {
        if (std::exchange(made_, true))
            return nullptr;
        auto* const made = new ut::test_suite(name_, __FILE__, __LINE__);
        made->add_precondition([made, skip_reason = skip_reason_](ut::test_unit_id) {
            const auto why = skip_reason ? skip_reason() : std::string();
            return why.empty() ? boost::test_tools::assertion_result(true) : report_skip(*made, why);
        });
        for (const auto& which : contents_)
            made->add(make_case(which));
        return made;
    }

private:
    ut::test_case* make_case(const contract_case& which) const
    {
        auto* const made = ut::make_test_case([run = run_, which] { run(which); }, which.name, which.file, which.line);
        for (const auto& [need, name] : need_names) {
            if (std::find(which.needs.begin(), which.needs.end(), need) != which.needs.end() && !(supported_.*need))
                made->add_precondition([made, name](ut::test_unit_id) {
                    return report_skip(*made, std::string("the backend has no ") + name);
                });
        }
        return made;
    }

    const std::string name_;
    const capabilities supported_;
    const std::function<std::string()> skip_reason_;
    const cases& contents_;
    const std::function<void(const contract_case&)> run_;
    mutable bool made_ = false;
};

class real_time_environment final : public environment
{
public:
    real_time_environment(asio::io_context& io, adapter_maker make, std::chrono::milliseconds short_ttl)
        : io_(io), make_(std::move(make)), short_ttl_(short_ttl)
    {
    }

    std::shared_ptr<adapter> make() override { return make_(); }
    void pass_time(lease_clock::duration span) override { pass_real_time(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return short_ttl_; }

private:
    asio::io_context& io_;
    const adapter_maker make_;
    const std::chrono::milliseconds short_ttl_;
};

} // namespace

void check_declared_capabilities(const std::string& name, const capabilities& declared, const capabilities& supported)
{
    for (const auto& [need, what] : need_names)
        BOOST_TEST(((declared.*need) == (supported.*need)),
            "the suite " << name << " was added with capabilities in which " << what << " is " << declared.*need
                         << ", but its adapter says " << supported.*need);
}

void add_suite(std::string name, const capabilities& supported, std::function<std::string()> skip_reason,
    const cases& contents, std::function<void(const contract_case&)> run)
{
    ut::framework::current_auto_test_suite().add(
        boost::make_shared<suite>(std::move(name), supported, std::move(skip_reason), contents, std::move(run)),
        ut::decorator::collector_t::instance());
}

void pass_real_time(asio::io_context& io, lease_clock::duration span)
{
    // Gives operations in flight some time to reach a server. The last millisecond of a TTL still belongs to its
    // holder.
    asio::steady_timer passed(io, std::max<lease_clock::duration>(span + 10ms, 20ms));
    bool over = false;
    passed.async_wait([&](const error_code&) { over = true; });
    testing::run_until(io, [&] { return over; });
}

std::function<std::unique_ptr<environment>(asio::io_context&)> in_real_time(
    std::function<adapter_maker(asio::io_context&)> open_store, std::chrono::milliseconds short_ttl)
{
    return [open_store = std::move(open_store), short_ttl](
               asio::io_context& io) { return std::make_unique<real_time_environment>(io, open_store(io), short_ttl); };
}

registration::registration(backend tested)
{
    const auto add = [&](const char* level, const cases& contents) {
        add_suite(tested.name + "_" + level, tested.capabilities, tested.skip_reason, contents,
            [tested](const contract_case& which) { run(tested, which); });
    };
    add("adapter", adapter_cases());
    add("locker", locker_cases());
}

} // namespace colock::contract
