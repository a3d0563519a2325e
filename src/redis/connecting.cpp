// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/greeting.hpp"
#include "redis/runtime.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/redis/error.hpp>

#include <utility>

namespace colock::redis::detail {

// Connecting: find the server, greet it, settle what the previous connection has left, then open the queue.

void client::connect()
{
    auto& run = *runtime_;
    try {
        if (auto warning = run.made.read_tls_files())
            run.told.warn_once(std::move(*warning));
    } catch (const error& refused) {
        refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
        return;
    }
    run.server = {};
    if (config_.where.master.empty()) {
        connect_to(config_.where.socket_path.empty() ? config_.where.hosts.front() : endpoint{});
        return;
    }
    run.search = std::make_shared<sentinel_search>(
        run.made, config_, [self = shared_from_this()](const endpoint& master, const failure_ptr& why) {
            self->runtime_->search = nullptr;
            if (why)
                self->fail_to_connect(why);
            else
                self->connect_to(master);
        });
    run.search->start();
}

void client::connect_to(const endpoint& where)
{
    auto& run = *runtime_;
    run.server = where;
    run.commands = run.made.make(where);
    run.greeter =
        std::make_shared<introduction>(run.commands, introduction::surroundings{config_, run.lost, anchor_, run.told},
            [self = shared_from_this()](const failure_ptr& refused, const introduction::identity& known_by) {
                self->introduced(refused, known_by);
            });
    run.greeter->start();
    run.commands->run([self = shared_from_this(), used = run.commands](const error_code& code) {
        // What waits for a connection in the driver is told that there is none.
        used->close();
        if (self->runtime_->commands == used)
            self->command_link_ended(code);
    });
}

void client::introduced(const failure_ptr& refused, const introduction::identity& known_by)
{
    runtime_->greeter = nullptr;
    if (refused) {
        fail_to_connect(refused);
        return;
    }
    runtime_->known_by = known_by;
    opened();
}

void client::opened()
{
    runtime_->problem = nullptr;
    carry_out(decide(remote::connection_plan::event::opened));
    check_messages();
    flush();
    ensure_messages();
}

void client::command_link_ended(const error_code& code)
{
    using event = remote::connection_plan::event;
    auto& run = *runtime_;
    if (!run.life.open() && code.category() == asio::error::get_ssl_category()) {
        refuse(make_failure(
            errc::misconfigured_backend, "no trusted TLS connection to the server: " + code.message(), code));
        return;
    }
    run.problem =
        run.life.demoted() ? replica_in_place_of_master() : make_failure(errc::unavailable, code.message(), code);
    carry_out(decide(code == boost::redis::error::pong_timeout ? event::silent : event::lost), code);
}

void client::fail_to_connect(const failure_ptr& why)
{
    if (why->code != errc::unavailable) {
        refuse(why);
        return;
    }
    runtime_->problem = why;
    carry_out(decide(remote::connection_plan::event::failed));
}

void client::refuse(const failure_ptr& why)
{
    auto& run = *runtime_;
    run.problem = why;
    give_up_queue(why);
    carry_out(decide(remote::connection_plan::event::refused));
    if (!run.giving_up)
        end_given_up();
    arm_tick();
}

std::string client::address() const
{
    const auto& place = config_.where;
    if (!place.socket_path.empty())
        return place.socket_path;
    if (place.master.empty() || !runtime_->server.host.empty())
        return to_text(runtime_->server);
    std::string all;
    for (const auto& each : place.hosts)
        all += (all.empty() ? "" : ",") + to_text(each);
    return all;
}

// What was decided about the connection.

remote::connection_plan::action client::decide(remote::connection_plan::event what)
{
    return runtime_->life.next(lease_clock::now(), what, demand());
}

void client::carry_out(const remote::connection_plan::action& decided, const error_code& loss)
{
    using kind = remote::connection_plan::action::kind;
    if (decided.say != remote::connection_news::item::none)
        runtime_->told.tell(decided.say, loss, runtime_->problem, address());
    switch (decided.what) {
    case kind::none:
        return;
    case kind::connect:
        connect();
        return;
    case kind::wait:
        let_go();
        retry_in(decided.delay);
        arm_tick();
        return;
    case kind::rest:
        runtime_->retry.cancel();
        let_go();
        arm_tick();
        finish_close();
        return;
    }
}

void client::let_go()
{
    auto& run = *runtime_;
    if (const auto old = std::exchange(run.search, nullptr))
        old->stop();
    if (const auto old = std::exchange(run.greeter, nullptr))
        old->stop();
    if (run.commands)
        run.commands->close();
    run.made.drop(run.commands);
}

void client::retry_in(lease_clock::duration delay)
{
    auto& run = *runtime_;
    run.retry.expires_after(delay);
    run.retry.async_wait([self = shared_from_this()](const error_code& code) {
        if (!code)
            self->carry_out(self->decide(remote::connection_plan::event::due));
    });
}

} // namespace colock::redis::detail
