// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/runtime.hpp"
#include "redis/scripts.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/redis/error.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

bool too_old(std::string_view info)
{
    const auto version = info_field(info, "redis_version");
    int major = 0;
    int minor = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), major);
    if (error != std::errc() || end == version.data() + version.size() || *end != '.')
        return false;
    std::from_chars(end + 1, version.data() + version.size(), minor);
    return major < 6 || (major == 6 && minor < 2);
}

failure_ptr replica_in_place_of_master()
{
    return make_failure(
        errc::unavailable, "the server is a replica: name the master, or use Sentinel", server_code("READONLY"));
}

} // namespace

std::string_view info_field(std::string_view info, std::string_view name)
{
    for (std::size_t at = 0; (at = info.find(name, at)) != std::string_view::npos; at += name.size()) {
        const bool starts_line = at == 0 || info[at - 1] == '\n';
        const auto value = at + name.size();
        if (starts_line && value < info.size() && info[value] == ':')
            return info.substr(value + 1, info.find_first_of("\r\n", value) - value - 1);
    }
    return {};
}

void push_greeting(boost::redis::request& request, const location& who)
{
    if (who.password.empty())
        request.push("HELLO", "3", "SETNAME", "colock");
    else
        request.push("HELLO", "3", "AUTH", who.user.empty() ? std::string("default") : who.user, who.password,
            "SETNAME", "colock");
}

// Connecting: find the server, greet it, settle what the previous connection has left, then open the queue.

void client::connect()
{
    if (config_.where.tls && !read_tls_files())
        return;
    runtime_->server = {};
    if (config_.where.master.empty())
        connect_to(config_.where.socket_path.empty() ? config_.where.hosts.front() : endpoint{});
    else
        ask_sentinel(0);
}

bool client::read_tls_files()
{
    try {
        if (auto warning = runtime_->tls.refresh())
            warn_once(std::move(*warning));
        return true;
    } catch (const error& refused) {
        refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
        return false;
    }
}

void client::ask_sentinel(std::size_t which)
{
    auto& run = *runtime_;
    if (which == 0)
        run.sentinel_problem = nullptr;
    if (which == config_.where.hosts.size()) {
        const auto& first = run.sentinel_problem;
        fail_to_connect(make_failure(errc::unavailable,
            "no Sentinel could name the master " + config_.where.master + (first ? ": " + first->detail : ""),
            first ? first->cause : error_code()));
        return;
    }
    const auto sentinel = std::make_shared<link>(
        run.strand, config_, config_.where.hosts[which], config_.where.tls, run.tls.context(), ++run.numbers);
    // Held by its own operations; the answer ends it.
    run.commands = sentinel;
    const auto found = std::make_shared<endpoint>();
    exchange::start(
        sentinel,
        [self = shared_from_this()](boost::redis::request& request) {
            const auto& config = self->config_;
            if (config.sentinel_password.empty())
                request.push("HELLO", "3");
            else
                request.push("HELLO", "3", "AUTH",
                    config.sentinel_user.empty() ? std::string("default") : config.sentinel_user,
                    config.sentinel_password);
            request.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", config.where.master);
        },
        [self = shared_from_this(), sentinel, found](delivery how, const reply_list& replies) {
            if (how == delivery::answered && replies[1].is(reply::kind::array) && replies[1].items.size() == 2)
                *found = {replies[1].at(0).text, replies[1].at(1).text};
            for (const auto& each : replies) {
                if (how == delivery::answered && each.is_error() && !self->runtime_->sentinel_problem)
                    self->runtime_->sentinel_problem = refusal(each);
            }
            sentinel->close();
        });
    sentinel->run([self = shared_from_this(), sentinel, found, which](const error_code& code) {
        sentinel->close();
        if (self->runtime_->life.current() != remote::connection_plan::phase::connecting ||
            self->runtime_->commands != sentinel)
            return;
        asio::post(self->runtime_->strand, [old = sentinel] {});
        // Once it has answered, its connection is closed by us.
        if (code && code != asio::error::operation_aborted && !self->runtime_->sentinel_problem)
            self->runtime_->sentinel_problem = make_failure(errc::unavailable, code.message(), code);
        if (found->host.empty())
            self->ask_sentinel(which + 1);
        else
            self->connect_to(*found);
    });
}

void client::connect_to(const endpoint& where)
{
    auto& run = *runtime_;
    run.server = where;
    run.commands =
        std::make_shared<link>(run.strand, config_, where, config_.where.tls, run.tls.context(), ++run.numbers);
    greet();
    run.commands->run([self = shared_from_this(), used = run.commands](const error_code& code) {
        // What waits for a connection in the driver is told that there is none.
        used->close();
        if (self->runtime_->commands == used)
            self->command_link_ended(code);
    });
}

void client::greet()
{
    auto& run = *runtime_;
    const std::size_t info_at = config_.where.database == 0 ? 1 : 2;
    exchange::start(
        run.commands,
        [self = shared_from_this()](boost::redis::request& request) {
            push_greeting(request, self->config_.where);
            if (self->config_.where.database != 0)
                request.push("SELECT", self->config_.where.database);
            request.push("INFO");
        },
        [self = shared_from_this(), used = run.commands, info_at](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->runtime_->commands == used)
                self->greeted(replies, info_at);
        });
}

void client::greeted(const reply_list& replies, std::size_t info_at)
{
    auto& run = *runtime_;
    const auto& hello = replies[0];
    if (hello.is_error() || !hello.is(reply::kind::array)) {
        refused_at_first(refusal(hello));
        return;
    }
    run.client_id = 0;
    std::string role;
    for (std::size_t i = 0; i + 1 < hello.items.size(); i += 2) {
        if (hello.items[i].text == "id")
            run.client_id = hello.items[i + 1].number;
        else if (hello.items[i].text == "role")
            role = hello.items[i + 1].text;
    }
    if (info_at == 2 && replies[1].is_error()) {
        refused_at_first(refusal(replies[1]));
        return;
    }
    if (role != "master" && !role.empty()) {
        fail_to_connect(replica_in_place_of_master());
        return;
    }
    const auto& info = replies[info_at];
    if (info.is_error() && refusal_code(info.text) == errc::unavailable) {
        fail_to_connect(refusal(info));
        return;
    }
    if (too_old(info.text)) {
        refuse(make_failure(errc::misconfigured_backend, "the server is older than Redis 6.2; update it"));
        return;
    }
    run.run_id = info.is_error() ? std::string() : std::string(info_field(info.text, "run_id"));
    inspect_server(info);
    run.commands->send_at_once();
    settle_previous();
}

void client::inspect_server(const reply& info)
{
    if (info.is_error()) {
        warn_once("INFO is not allowed, so the server's settings cannot be checked");
        return;
    }
    const auto field = [&](std::string_view name) { return info_field(info.text, name); };
    if (const auto policy = field("maxmemory_policy"); !policy.empty() && policy != "noeviction") {
        warn_once("the server may evict locks (maxmemory-policy " + std::string(policy) + "); set it to noeviction");
    }
    if (field("aof_enabled") == "0")
        warn_once("the server keeps no append-only file: a restart loses locks and gives them to others");
    if (const auto replicas = field("connected_slaves"); !replicas.empty() && replicas != "0") {
        warn_once("the server has replicas: a failover can lose a lock that was granted just before");
        // Told only where both of its settings are above 0.
        if (field("min_slaves_good_slaves").empty())
            warn_once(
                "min-replicas-to-write is not set: a master that is cut off goes on granting locks for as long as "
                "it is, beside the one that was promoted in its place");
    }
}

void client::settle_previous()
{
    auto& run = *runtime_;
    run.connections.connected_to(run.run_id);
    const auto suspects = run.connections.to_close();
    if (suspects.empty() && config_.plain()) {
        opened();
        return;
    }
    exchange::start(
        run.commands,
        [self = shared_from_this(), suspects](boost::redis::request& request) {
            for (const auto& each : suspects)
                request.push("CLIENT", "KILL", "ID", each.id);
            if (!self->config_.plain())
                self->push_anchor(request, script::form::whole);
        },
        [self = shared_from_this(), used = run.commands, suspects](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->runtime_->commands == used)
                self->settled_previous(replies, suspects);
        });
}

void client::settled_previous(const reply_list& replies, const std::vector<remote::lost_requests::suspect>& killed)
{
    auto& run = *runtime_;
    for (std::size_t i = 0; i < killed.size(); ++i) {
        if (replies[i].is(reply::kind::number)) {
            run.connections.closed_by_server(killed[i].number);
            continue;
        }
        if (auto why = refusal(replies[i]); why->code == errc::unavailable) {
            // It passes, and the right to kill may be there after all.
            fail_to_connect(std::move(why));
            return;
        }
        run.connections.not_to_be_closed(killed[i].number);
        warn_once("CLIENT KILL is not allowed, so an interrupted acquire can only be settled by waiting for its ttl");
    }
    if (!config_.plain() && !replies.back().is(reply::kind::number)) {
        refused_at_first(refusal(replies.back()));
        return;
    }
    anchored_.store(lease_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
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

void client::refused_at_first(const failure_ptr& why)
{
    if (why->code == errc::unavailable)
        fail_to_connect(why);
    else
        refuse(why);
}

void client::fail_to_connect(failure_ptr why)
{
    runtime_->problem = std::move(why);
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
    announce(decided.say, loss);
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

void client::announce(remote::connection_news::item what, const error_code& loss) const
{
    using news = remote::connection_news::item;
    const auto events = events_.lock();
    if (!events)
        return;
    switch (what) {
    case news::none:
        return;
    case news::ready:
        events->on_ready();
        return;
    case news::suspended:
        events->on_suspended(loss);
        return;
    case news::reconnected:
        events->on_reconnected();
        return;
    case news::unreachable:
        events->on_unreachable(runtime_->problem, address());
        return;
    }
}

void client::let_go()
{
    auto& run = *runtime_;
    if (!run.commands)
        return;
    run.commands->close();
    // Destroyed by a fresh handler: this one may be among its own.
    asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
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

void client::warn_once(std::string message)
{
    const auto [kept, fresh] = runtime_->warned.insert(std::move(message));
    if (!fresh)
        return;
    if (const auto events = events_.lock())
        events->on_warning(*kept);
}

} // namespace colock::redis::detail
