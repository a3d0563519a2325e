// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/instrumented_adapter.hpp"
#include "support/jump.hpp"
#include "support/run.hpp"

#include <colock/memory/adapter.hpp>
#include <colock/testing/remote_contract.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

using namespace std::chrono_literals;
using testing::operation;
using testing::step;

constexpr std::array requests{operation::create, operation::release, operation::abandon, operation::extend,
    operation::is_valid, operation::hand_over, operation::inspect, operation::break_key, operation::list,
    operation::purge, operation::create_all, operation::group, operation::adopt};

const error_code no_answer = asio::error::timed_out;
const error_code refused = asio::error::connection_refused;

/// An adapter that reports the state of its link.
struct client
{
    client(std::shared_ptr<adapter> store, const asio::any_io_executor& executor,
        std::chrono::milliseconds operation_timeout)
        : script(std::make_shared<testing::instrumented_adapter>(std::move(store), executor)),
          timeout(operation_timeout)
    {
        set_working();
    }

    void set(const step& how, const step& wait) const
    {
        script->reset();
        for (const auto each : requests)
            script->always(each, how);
        script->always(operation::wait, wait);
    }
    void set_working()
    {
        set(step::pass().before([this] { find(); }), step::pass());
    }
    void set_silent()
    {
        if (!is_connected)
            script->contact().set_connecting("server");
        set(step::lose_request().delay(timeout).before([this] { lose(no_answer); }), step::hold());
    }
    void set_refusing()
    {
        lose(refused);
        const auto report = [this] {
            script->contact().set_down(make_failure(errc::unavailable, "nobody is there", refused), "server");
        };
        set(step::fail(errc::unavailable, "nobody is there", refused).before(report), step::fail(errc::unavailable));
    }
    /// Establishes a connection, or finds an existing one.
    void find()
    {
        if (std::exchange(is_connected, true))
            return;
        script->contact().set_up();
    }
    void lose(const error_code& why)
    {
        if (std::exchange(is_connected, false))
            script->contact().set_down(why);
    }

    const std::shared_ptr<testing::instrumented_adapter> script;
    const std::chrono::milliseconds timeout;
    bool is_connected = false;
};

class scripted_link final : public remote_environment
{
public:
    explicit scripted_link(asio::io_context& io) : io_(io), store_(memory::make_adapter(io.get_executor())) {}

    // Answers are posted, not delivered inside the call, like the answers of a server.
    std::shared_ptr<adapter> make() override
    {
        return std::make_shared<testing::instrumented_adapter>(store_, io_.get_executor());
    }
    std::shared_ptr<adapter> make_linked(std::chrono::milliseconds timeout) override
    {
        auto& made = *clients_.emplace_back(std::make_unique<client>(store_, io_.get_executor(), timeout));
        apply(made);
        return made.script;
    }
    void pass_time(lease_clock::duration span) override { testing::jump(io_, span); }
    std::chrono::milliseconds short_ttl() const override { return 10s; }

    void cut(lost_part what) override
    {
        for (const auto& each : clients_) {
            const auto how = what == lost_part::request ? step::lose_request() : step::lose_reply();
            for (const auto request : requests)
                each->script->next(request, step(how).before([this] {
                    ++cuts_;
                    apply_all();
                }));
        }
    }
    int cuts() const override { return cuts_; }
    void hold() override
    {
        for (const auto& each : clients_)
            each->set(step::hold_unknown(), step::pass());
    }
    bool holds() override
    {
        return std::ranges::any_of(clients_, [](const auto& each) { return each->script->held_count() > 0; });
    }
    void hang_up() override { apply_all(); }
    void deliver() override
    {
        for (const auto& each : clients_) {
            while (each->script->deliver())
                continue;
        }
        testing::run_ready(io_);
    }
    void silence(bool silent) override
    {
        silent_ = silent;
        apply_all();
        if (silent)
            return;
        // While the link is silent, the script holds back waits only.
        for (const auto& each : clients_) {
            while (each->script->discard())
                continue;
        }
    }
    void refuse(bool refuses) override
    {
        refuses_ = refuses;
        apply_all();
    }
    void serve(bool serves) override
    {
        serves_ = serves;
        apply_all();
    }
    std::vector<std::string> stored() override
    {
        std::vector<std::string> keys;
        for (auto& each : testing::stored_in(*store_))
            keys.push_back(std::move(each.key));
        return keys;
    }

private:
    void apply(client& to) const
    {
        if (refuses_ || !serves_)
            to.set_refusing();
        else if (silent_)
            to.set_silent();
        else
            to.set_working();
    }
    void apply_all() const
    {
        for (const auto& each : clients_)
            apply(*each);
    }

    testing::virtual_clock clock_;
    asio::io_context& io_;
    const std::shared_ptr<adapter> store_;
    std::vector<std::unique_ptr<client>> clients_;
    int cuts_ = 0;
    bool silent_ = false;
    bool refuses_ = false;
    bool serves_ = true;
};

const remote_registration scripted_backend({
    .name = "scripted",
    .capabilities = {.shared = true,
        .semaphore = true,
        .no_ttl = true,
        .fifo = true,
        .fence = true,
        .list = true,
        .lists_fence = true,
        .events = true,
        .create_all = true,
        .groups = true,
        .extends_groups = true,
        .tickets = true},
    .make_environment = [](asio::io_context& io) { return std::make_unique<scripted_link>(io); },
});

} // namespace

} // namespace colock::contract
