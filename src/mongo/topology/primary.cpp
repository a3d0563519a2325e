// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/primary.hpp"

#include "mongo/commands/query.hpp"
#include "mongo/driver/driver.hpp"
#include "mongo/driver/hello.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Wire version of MongoDB 5.0.
constexpr int min_wire_version = 13;
/// Maximum difference, in milliseconds, of two clocks that count as the same.
constexpr std::int64_t max_hello_difference = 250;

} // namespace

primary::primary(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& reporter, std::function<void()> on_capacity)
    : connection_loop(strand, owner, reporter, saturating_cast(config.idle_timeout)), strand_(strand), config_(config),
      on_capacity_(std::move(on_capacity)), tls_files_(config.tls)
{
    const auto& target = config.target;
    if (target.user.empty())
        return;
    prepare_cryptography();
    credentials_ = std::make_shared<const credentials>(credentials{.user = target.user,
        .password = target.password,
        .source = target.auth_source,
        .mechanism = target.auth_mechanism});
}

bool primary::has_capacity() noexcept
{
    return pool_ && plan().takes_requests() && pool_->has_capacity();
}

void primary::ask(task_ptr task, lease_clock::time_point deadline)
{
    if (pool_ && plan().open()) {
        note_use();
        pool_->ask(std::move(task), deadline);
    } else {
        asio::post(strand_, [task = std::move(task)] { task->on_end(); });
    }
}

void primary::ask_next(task& current, task_ptr next)
{
    if (pool_ && plan().open()) {
        note_use();
        current.follow_with(std::move(next));
    } else {
        ask(std::move(next));
    }
}

void primary::give_up(const task& task)
{
    if (pool_)
        pool_->give_up(task);
}

void primary::warn_if_unexplained(const answer& result, std::int32_t no_change_code)
{
    if (is_unexplained(result, no_change_code) && unexplained_codes_.insert(result.code).second)
        reports_.warn(address() + ": the server has failed a command, and does not report what it has carried out (" +
                      description_of(result) + "); such commands are sent again");
}

void primary::note_failure(const answer& result)
{
    warn_if_unexplained(result, no_change_code_);
    if (!plan().open())
        return;
    // Other connections may have been lost as well, without notice.
    const bool is_lost = result.outcome == answer::kind::unknown && result.code == 0;
    if (is_lost && pool_)
        pool_->close_free();
    // A server that states no process may have been replaced without notice, so it is found and checked again.
    if (!needs_new_primary(result) && !(is_lost && server_.identity && server_.identity->process.empty()))
        return;
    set_problem(failure_of(result));
    lose(problem()->cause ? problem()->cause : asio::error::connection_reset);
}

failure_ptr primary::failure_of_operation(const answer& result, effect operation_effect)
{
    const auto failure = failure_of(result, no_change_code_, operation_effect);
    return result.ends_connection && failure->code == errc::access_denied ? tolerate(failure) : failure;
}

std::shared_ptr<callback_command> primary::make_clock_command(callback_command::handler then) const
{
    if (uses_hello_clock_)
        return std::make_shared<callback_command>(command::dated_hello{}, std::move(then));
    return std::make_shared<callback_command>(config_.database, clock_command(config_), std::move(then));
}

std::optional<answer> primary::update_clock(const answer& result)
{
    if (const auto time = read_time(result.reply)) {
        clock_.update(*time, result.sent_at, lease_clock::now());
        return std::nullopt;
    }
    const hello hello_reply(result.reply);
    if (!hello_reply.writable)
        return make_not_primary("the server is " + hello_reply.state);
    clock_.update(hello_reply.local_time, result.sent_at, lease_clock::now());
    return std::nullopt;
}

bool primary::accepts_unconfirmed(const answer& confirmation_answer)
{
    if (!is_denial(confirmation_answer))
        return false;
    reports_.warn("this user may not write to the collection, so what is read is not confirmed by a majority: a "
                  "server that was the primary once may answer is_locked, list and group from old data");
    return true;
}

void primary::give_up()
{
    if (!plan().open())
        return;
    handle(event::given_up);
    lose(asio::error::operation_aborted);
}

void primary::on_all_stale()
{
    set_problem(make_failure(errc::unavailable, "the connection was lost", asio::error::connection_reset));
    lose(problem()->cause);
}

/// Closes all connections, whose loss is reported with `error`. Commands in progress fail.
void primary::lose(const error_code& error)
{
    const auto old = std::exchange(pool_, nullptr);
    handle(event::lost, error);
    if (old)
        asio::post(strand_, [old] { old->close_all(); });
}

void primary::connect()
{
    if (config_.target.tls) {
        try {
            if (auto warning = tls_files_.refresh())
                reports_.warn(*warning);
            tls_.emplace(tls_files_.context());
        } catch (const error& refused) {
            refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
            return;
        }
    }
    discovery_params params{.replica_set = config_.target.replica_set, .direct = config_.target.direct};
    for (const auto& each : config_.target.hosts)
        params.hosts.push_back({.host = each.host,
            .port = each.port,
            .tls = tls_ ? &*tls_ : nullptr,
            .server_name = config_.tls.server_name,
            .connect_timeout = config_.connect_timeout});
    discovery_ = std::make_shared<server_discovery>(strand_, std::move(params));
    discovery_->start([self = owner_.keep(*this)](const discovery_result& result) { self->on_discovered(result); });
}

void primary::on_discovered(const discovery_result& result)
{
    // Destroyed later, because this function is called by the discovery object.
    asio::post(strand_, [old = std::exchange(discovery_, nullptr)] {});
    switch (result.outcome) {
    case discovery_result::kind::not_found:
        if (result.cause.category() == asio::error::get_ssl_category())
            refuse(make_failure(
                errc::misconfigured_backend, "no trusted TLS connection: " + result.reasons, result.cause));
        else
            fail_to_connect(make_failure(errc::unavailable, result.reasons, result.cause));
        return;
    case discovery_result::kind::misconfigured:
        refuse(make_failure(errc::misconfigured_backend, result.reasons));
        return;
    case discovery_result::kind::primary:
        break;
    }
    if (result.identity.max_wire_version < min_wire_version) {
        refuse(make_failure(errc::misconfigured_backend, std::string("the server ") + too_old));
        return;
    }
    server_ = result.at;
    server_.identity = result.identity;
    server_.login = credentials_;
    hello_clock_ = result.clock;
    is_member_ = !result.identity.set.empty();
    pool_ = std::make_shared<connection_pool>(strand_, server_, config_.connections);
    // The pool is a member, so it must not keep its owner alive.
    pool_->on_capacity([this, all = owner_.weak_from_this()] {
        if (const auto kept = all.lock(); kept && plan().takes_requests())
            on_capacity_();
    });
    pool_->on_authenticated([this, all = owner_.weak_from_this()] {
        // Before the connection is open, the server may still deny the rights that its check needs.
        if (const auto kept = all.lock(); kept && plan().open())
            plan().note_accepted();
    });
    pool_->on_all_stale([this, all = owner_.weak_from_this()] {
        if (const auto kept = all.lock(); kept && plan().open())
            on_all_stale();
    });
    const bool is_same_process = !result.identity.process.empty() && result.identity == checked_;
    if (server_.name() != checked_name_ || !is_same_process) {
        check(checked_name_.empty() || !result.identity.is_restart_of(checked_));
        return;
    }
    if (uses_hello_clock_)
        clock_ = hello_clock_;
    // With a login, the server accepts the user when it authenticates the first connection.
    if (!server_.login)
        plan().note_accepted();
    opened();
}

void primary::check(bool all)
{
    checks_all_ = all;
    check_ = std::make_shared<server_check>(
        config_, pool_, [self = owner_.keep(*this)](const failure_ptr& failure) { self->on_checked(failure); },
        [self = owner_.keep(*this)](
            const answer& result, std::int32_t no_change_code) { self->warn_if_unexplained(result, no_change_code); });
    if (all)
        check_->start();
    else
        check_->learn_code();
}

void primary::on_checked(const failure_ptr& failure)
{
    const auto finished_check = std::exchange(check_, nullptr);
    if (failure) {
        fail_to_connect(failure);
        return;
    }
    // A server with another code is of another kind.
    if (!checks_all_ && finished_check->no_change_code() != no_change_code_) {
        check(true);
        return;
    }
    set_clock(finished_check->clock());
    no_change_code_ = finished_check->no_change_code();
    checked_name_ = server_.name();
    checked_ = *server_.identity;
    plan().note_accepted();
    opened();
}

void primary::set_clock(const server_clock& measured)
{
    clock_ = measured;
    const auto lead = hello_clock_.lead_over(measured);
    const auto difference = std::abs(lead);
    const bool was_used = std::exchange(uses_hello_clock_, difference <= max_hello_difference);
    if (was_used && !uses_hello_clock_)
        reports_.warn(address() + ": the clock in the server's hello is at least " + std::to_string(difference) +
                      (lead > 0 ? " ms ahead of" : " ms behind") +
                      " the clock of its updates ($$NOW), which alone decides about leases; each read costs a "
                      "write until the clocks are synchronized");
}

void primary::disconnect()
{
    if (const auto old = std::exchange(discovery_, nullptr))
        old->close();
    if (const auto old = std::exchange(check_, nullptr))
        old->stop();
    // Posted, because the current handler may belong to a task of the pool.
    if (const auto old = std::exchange(pool_, nullptr))
        asio::post(strand_, [old] { old->close_all(); });
}

} // namespace colock::inline v0::mongo::detail
