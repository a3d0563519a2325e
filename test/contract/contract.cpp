// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/adapter_contract.hpp>

#include "contract.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/make_shared.hpp>

#include <algorithm>
#include <iostream>
#include <utility>

namespace colock::contract {

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

subject::subject(asio::io_context& io, environment& surroundings)
    : driver(io, surroundings.make()), surroundings_(surroundings)
{
}

locker subject::make_locker(locker_options options) const
{
    return locker(shared_backend(), std::move(options));
}

locker subject::make_other_locker(locker_options options)
{
    return locker(surroundings_.make(), std::move(options));
}

void subject::check_nothing_left()
{
    testing::run_ready(io());
    // What was started in the background may still be on its way; an expiry must not do its work.
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
    {&capabilities::fifo, "a queue"},
    {&capabilities::fence, "fences"},
    {&capabilities::list, "lists"},
    {&capabilities::events, "events"},
    {&capabilities::expires, "grants that it ends by itself"},
};

boost::test_tools::assertion_result skipped(const ut::test_unit& unit, const std::string& why)
{
    // Boost.Test itself is silent about it at its usual log level.
    std::cout << "skipped: " << unit.full_name() << ": " << why << std::endl;
    boost::test_tools::assertion_result no(false);
    no.message() << why;
    return no;
}

void run(const backend& tested, const contract_case& which)
{
    asio::io_context io;
    const auto surroundings = tested.make_environment(io);
    subject on(io, *surroundings);
    for (const auto& [need, name] : need_names)
        BOOST_TEST(((tested.able.*need) == (on.able().*need)), tested.name << " is described wrongly: " << name);
    which.body(on);
    if (on.able().list)
        on.check_nothing_left();
}

ut::test_case* make_case(const backend& tested, const contract_case& which)
{
    auto* const made = ut::make_test_case([tested, which] { run(tested, which); }, which.name, which.file, which.line);
    for (const auto& [need, name] : need_names) {
        if (std::find(which.needs.begin(), which.needs.end(), need) != which.needs.end() && !(tested.able.*need))
            made->add_precondition(
                [made, name](ut::test_unit_id) { return skipped(*made, std::string("the backend has no ") + name); });
    }
    return made;
}

/// Asked when all static objects stand, so that no case can be missed.
class suite final : public ut::test_unit_generator
{
public:
    suite(backend tested, const char* level, cases& contents)
        : tested_(std::move(tested)), name_(tested_.name + "_" + level), contents_(contents)
    {
    }
    virtual ~suite() = default;

    ut::test_unit* next() const override
    {
        if (std::exchange(made_, true))
            return nullptr;
        auto* const made = new ut::test_suite(name_, __FILE__, __LINE__);
        made->add_precondition([made, missing = tested_.missing](ut::test_unit_id) {
            const auto why = missing ? missing() : std::string();
            return why.empty() ? boost::test_tools::assertion_result(true) : skipped(*made, why);
        });
        for (const auto& which : contents_)
            made->add(make_case(tested_, which));
        return made;
    }

private:
    const backend tested_;
    const std::string name_;
    cases& contents_;
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
    void pass_time(lease_clock::duration span) override
    {
        // What is begun gets some time to reach a server, and the last millisecond of a ttl still belongs to its
        // holder.
        asio::steady_timer passed(io_, std::max<lease_clock::duration>(span + 10ms, 20ms));
        bool over = false;
        passed.async_wait([&](const error_code&) { over = true; });
        testing::run_until(io_, [&] { return over; });
    }
    std::chrono::milliseconds short_ttl() const override { return short_ttl_; }

private:
    asio::io_context& io_;
    const adapter_maker make_;
    const std::chrono::milliseconds short_ttl_;
};

} // namespace

std::function<std::unique_ptr<environment>(asio::io_context&)> in_real_time(
    std::function<adapter_maker(asio::io_context&)> begin, std::chrono::milliseconds short_ttl)
{
    return [begin = std::move(begin), short_ttl](
               asio::io_context& io) { return std::make_unique<real_time_environment>(io, begin(io), short_ttl); };
}

registration::registration(backend tested)
{
    auto& decorators = ut::decorator::collector_t::instance();
    ut::framework::current_auto_test_suite().add(
        boost::make_shared<suite>(tested, "adapter", adapter_cases()), decorators);
    ut::framework::current_auto_test_suite().add(
        boost::make_shared<suite>(std::move(tested), "locker", locker_cases()), decorators);
}

} // namespace colock::contract
