// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/session.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/connection/rights_check.hpp"
#include "redis/failures.hpp"

#include <colock/clock.hpp>

#include <boost/asio/error.hpp>

#include <exception>

namespace colock::inline v0::redis::detail {

session::session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    connection_factory& factory, remote::event_reporter& reporter, std::shared_ptr<remote::connection_events> events,
    fence_anchor& anchor, std::atomic<bool>& replicas_seen)
    : connection_loop(strand, owner, reporter, saturating_cast(config.idle_timeout), std::move(events)),
      config_(config), factory_(factory), anchor_(anchor), replicas_seen_(replicas_seen),
      authentication_(strand, owner, config, reporter), has_sharded_channels_(config.cluster()),
      lost_(factory.last_number())
{
}

void session::connect()
{
    run_ = run();
    run_.start();
    suspension_.rethrow();
}

remote::coroutine session::run()
{
    if (auto failure = read_tls_files())
        co_await fail(std::move(failure));

    // 1. Find the server.
    const auto& location = config_.location;
    server_ = location.master.empty() && location.socket_path.empty() ? location.hosts.front() : endpoint{};
    if (!location.master.empty()) {
        if (was_lost_)
            start_watch();
        make_search();
        co_await find_master([search = search_] { search->start(); });
    }

    // 2. Connect, and prepare the connection for requests. The Sentinels may name several servers, one after another.
    for (;;) {
        co_await get_credentials();
        make_connection();
        failure_ptr failure;
        co_await greet(failure);
        if (!failure)
            co_await prepare(failure);
        if (failure && !search_)
            co_await fail(std::move(failure));
        if (!search_)
            break;
        if (failure) {
            drop_connection();
            co_await find_master([search = search_, failure] { search->request_next(failure); });
            continue;
        }
        // This server may have been paused, and replaced as the master, before it answered. It would then confirm and
        // grant locks that the new master has granted to others. So the Sentinels are asked again.
        const auto current = server_;
        co_await find_master([search = search_, current] { search->confirm(current); });
        if (server_ == current)
            break;
        drop_connection();
    }
    drop_search();
    stop_watch();
    was_lost_ = false;

    // 3. Report that the connection is ready. The coroutine is resumed when the connection has ended.
    plan().note_accepted();
    authentication_.keep_valid(connection_);
    co_await suspension_.suspend([this] { opened(); });

    // 4. Report the end, after which the coroutine is destroyed.
    co_await suspension_.suspend([this] {
        was_lost_ = true;
        const auto error = *end_error_;
        set_problem(plan().demoted() ? make_replica_failure() : lost_connection(address(), error));
        handle(error == asio::error::timed_out ? event::silent : event::lost, error);
    });
}

failure_ptr session::read_tls_files()
{
    try {
        if (auto warning = factory_.read_tls_files())
            reports_.warn(*warning);
        return nullptr;
    } catch (const error& exception) {
        return make_failure(errc::invalid_options, exception.detail(), exception.cause());
    }
}

void session::make_search()
{
    search_ = std::make_shared<sentinel_search>(
        factory_, config_, [self = owner_.keep(*this)](const endpoint& master, const failure_ptr& failure) {
            if (!failure)
                self->server_ = master;
            self->not_found_ = failure;
            self->suspension_.resume();
        });
}

remote::coroutine session::find_master(std::function<void()> start_query)
{
    co_await suspension_.suspend(std::move(start_query));
    if (end_error_)
        co_await fail(end_failure());
    if (not_found_)
        co_await fail(not_found_);
}

remote::coroutine session::get_credentials()
{
    if (!authentication_.is_requested())
        co_return;
    co_await suspension_.suspend([this] {
        authentication_.request([this](const failure_ptr& failure) {
            no_credentials_ = failure;
            suspension_.resume();
        });
    });
    if (no_credentials_)
        co_await fail(no_credentials_);
}

void session::make_connection()
{
    connection_ = factory_.make(server_);
    connection_->run([self = owner_.keep(*this), current = connection_](const error_code& error) {
        // The driver may still hold requests that wait for a connection. Closing ends them.
        current->close();
        if (self->connection_ != current)
            return;
        self->end_error_ = current->translate_error(error);
        if (!self->suspension_.resume())
            self->fail_to_connect(self->end_failure());
    });
}

void session::send(boost::redis::request commands)
{
    connection_->exec(
        std::move(commands), [self = owner_.keep(*this), current = connection_](const reply_list& replies) {
            if (self->connection_ != current)
                return;
            self->replies_ = replies;
            self->suspension_.resume();
        });
}

remote::coroutine session::greet(failure_ptr& failure)
{
    boost::redis::request greeting;
    push_greeting(greeting, authentication_.user(), authentication_.password(), config_.location.database);
    co_await exec(std::move(greeting));
    if (end_error_) {
        failure = end_failure();
        co_return;
    }
    auto result = read_greeting(config_.location, replies_);
    failure = result.failure;
    if (failure)
        co_return;
    if (result.in_cluster && !config_.cluster() && !config_.has_hash_tag()) {
        // Without a hash tag, the locks, the fence counter and the indexes of groups may be in different slots. The
        // server refuses a script with keys of several slots, and may not have the slot of the fence counter.
        failure = make_failure(errc::misconfigured_backend,
            "the server is a node of a Redis Cluster: write "
            "redis+cluster://, or give a prefix with braces, so that all keys share a slot");
        co_return;
    }
    if (result.in_cluster && config_.is_quorum_node) {
        failure = make_failure(errc::misconfigured_backend,
            "the server is a node of a Redis Cluster, which cannot be a master of a quorum: name a server of its own");
        co_return;
    }
    if (config_.cluster() && !result.in_cluster) {
        failure = make_failure(
            errc::misconfigured_backend, "the server is not a node of a Redis Cluster: write redis:// or rediss://");
        co_return;
    }
    if (result.may_have_replicas)
        replicas_seen_.store(true, std::memory_order_relaxed);
    identity_ = std::move(result.identity);
    for (auto& each : result.warnings)
        reports_.warn(each);
    connection_->disable_nagle();
}

remote::coroutine session::prepare(failure_ptr& failure)
{
    lost_.on_connected_to(identity_.process);
    const auto connections = lost_.connections_to_close();
    boost::redis::request commands;
    for (const auto& each : connections)
        commands.push("CLIENT", "KILL", "ID", each.id);
    push_rights_check(commands, config_);
    const bool raises_counter = !config_.plain() && !config_.cluster();
    if (raises_counter)
        anchor_.push(commands, script::form::whole, config_.fence_key({}), 0);
    co_await exec(std::move(commands));
    if (end_error_) {
        failure = end_failure();
        co_return;
    }
    for (std::size_t i = 0; i < connections.size(); ++i) {
        if (replies_[i].is(reply::kind::number)) {
            lost_.on_closed_by_server(connections[i].number);
            continue;
        }
        // A temporary error does not prove that the user lacks this right. The next attempt kills these connections.
        if (auto reply_failure = detail::refusal(replies_[i]); reply_failure->code == errc::unavailable) {
            failure = std::move(reply_failure);
            co_return;
        }
        lost_.on_close_refused(connections[i].number);
    }
    auto rights =
        read_rights(replies_[connections.size()], replies_[connections.size() + 1], replies_[connections.size() + 2]);
    failure = std::move(rights.failure);
    if (failure)
        co_return;
    sorted_sets_refused_ = std::move(rights.sorted_sets_refused);
    has_sharded_channels_ = config_.cluster() && rights.has_sharded_channels;
    for (auto& each : rights.warnings)
        reports_.warn(each);
    if (raises_counter && !replies_.back().is(reply::kind::number)) {
        failure = detail::refusal(replies_.back());
        co_return;
    }
    anchor_.on_connected(lease_clock::now());
    connection_->note_established();
}

failure_ptr session::end_failure()
{
    const auto certificate_failure = connection_->certificate_failure(*end_error_);
    if (certificate_failure)
        return certificate_failure;
    const auto& last_error = connection_->last_error();
    // Another error may be a right that is not needed.
    if (last_error.is_error() && refusal_code(last_error.text) == errc::unavailable)
        return detail::refusal(last_error);
    return lost_connection(address(), *end_error_);
}

void session::give_up()
{
    if (!plan().open() || !owner_.demand().has_in_flight)
        return;
    handle(event::given_up);
    connection_->close();
}

void session::disconnect()
{
    end_run();
    stop_watch();
}

void session::disconnect_for_retry()
{
    end_run();
    if (!config_.location.master.empty())
        start_watch();
}

void session::start_watch() noexcept
{
    try {
        if (!watch_)
            watch_ = std::make_shared<sentinel_watch>(factory_, config_,
                [self = owner_.keep(*this)](const endpoint& old_master) { self->on_switch(old_master); });
        watch_->start();
    } catch (const std::exception&) {
        // The new master is found after the back-off.
    }
}

void session::on_switch(const endpoint& old_master)
{
    if (plan().current() == remote::connection_plan::phase::connecting && server_ == old_master)
        fail_to_connect(make_failure(errc::unavailable, "the Sentinels have replaced " + to_text(old_master)));
    end_back_off();
}

void session::stop_watch()
{
    if (const auto old = std::exchange(watch_, nullptr))
        old->stop();
}

void session::end_run()
{
    run_ = {};
    authentication_.stop();
    drop_search();
    drop_connection();
}

void session::drop_search()
{
    if (const auto old = std::exchange(search_, nullptr))
        old->stop();
}

void session::drop_connection()
{
    end_error_.reset();
    if (connection_)
        connection_->close();
    factory_.drop(connection_);
}

std::string session::address() const
{
    const auto& location = config_.location;
    if (!location.socket_path.empty())
        return location.socket_path;
    // The address of a single server is known before the first attempt to connect.
    if (location.master.empty())
        return to_text(location.hosts.front());
    if (!server_.host.empty())
        return to_text(server_);
    std::string all;
    for (const auto& each : location.hosts)
        all += (all.empty() ? "" : ",") + to_text(each);
    return all;
}

} // namespace colock::inline v0::redis::detail
