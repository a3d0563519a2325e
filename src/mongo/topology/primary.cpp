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
    const auto& who = config.where;
    if (who.user.empty())
        return;
    prepare_cryptography();
    credentials_ = std::make_shared<const credentials>(credentials{
        .user = who.user, .password = who.password, .source = who.auth_source, .mechanism = who.auth_mechanism});
}

bool primary::has_capacity() noexcept
{
    return pool_ && plan().takes_requests() && pool_->has_capacity();
}

void primary::ask(task_ptr what, lease_clock::time_point deadline)
{
    if (pool_ && plan().open()) {
        note_use();
        pool_->ask(std::move(what), deadline);
    } else {
        asio::post(strand_, [what = std::move(what)] { what->on_end(); });
    }
}

void primary::ask_next(task& answered, task_ptr what)
{
    if (pool_ && plan().open()) {
        note_use();
        answered.follow_with(std::move(what));
    } else {
        ask(std::move(what));
    }
}

void primary::give_up(const task& what)
{
    if (pool_)
        pool_->give_up(what);
}

void primary::warn_if_unexplained(const answer& got, std::int32_t no_change_code)
{
    if (is_unexplained(got, no_change_code) && unexplained_codes_.insert(got.code).second)
        reports_.warn(address() + ": the server has failed a command, and does not report what it has carried out (" +
                      description_of(got) + "); such commands are sent again");
}

void primary::note_failure(const answer& got)
{
    warn_if_unexplained(got, no_change_code_);
    if (!plan().open())
        return;
    // Other connections may have been lost as well, without notice.
    const bool is_lost = got.what == answer::kind::unknown && got.code == 0;
    if (is_lost && pool_)
        pool_->close_free();
    // A server that states no process may have been replaced without notice, so it is found and checked again.
    if (!needs_new_primary(got) && !(is_lost && where_.identity && where_.identity->process.empty()))
        return;
    set_problem(failure_of(got));
    lose(problem()->cause ? problem()->cause : asio::error::connection_reset);
}

failure_ptr primary::failure_of_operation(const answer& got, effect what)
{
    const auto why = failure_of(got, no_change_code_, what);
    return got.ends_connection && why->code == errc::access_denied ? tolerate(why) : why;
}

std::shared_ptr<callback_command> primary::make_clock_command(callback_command::handler then) const
{
    if (uses_hello_clock_)
        return std::make_shared<callback_command>(command::dated_hello{}, std::move(then));
    return std::make_shared<callback_command>(config_.database, clock_command(config_), std::move(then));
}

std::optional<answer> primary::update_clock(const answer& got)
{
    if (const auto time = read_time(got.reply)) {
        clock_.update(*time, got.asked, lease_clock::now());
        return std::nullopt;
    }
    const hello hello_reply(got.reply);
    if (!hello_reply.writable)
        return make_not_primary("the server is " + hello_reply.state);
    clock_.update(hello_reply.local_time, got.asked, lease_clock::now());
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

/// Closes all connections, whose loss is reported with the error `why`. Commands in progress fail.
void primary::lose(const error_code& why)
{
    const auto old = std::exchange(pool_, nullptr);
    handle(event::lost, why);
    if (old)
        asio::post(strand_, [old] { old->close_all(); });
}

void primary::connect()
{
    if (config_.where.tls) {
        try {
            if (auto warning = tls_files_.refresh())
                reports_.warn(*warning);
            tls_.emplace(tls_files_.context());
        } catch (const error& refused) {
            refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
            return;
        }
    }
    discovery_params params{.replica_set = config_.where.replica_set, .direct = config_.where.direct};
    for (const auto& each : config_.where.hosts)
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
    switch (result.what) {
    case discovery_result::kind::not_found:
        if (result.cause.category() == asio::error::get_ssl_category())
            refuse(make_failure(errc::misconfigured_backend, "no trusted TLS connection: " + result.why, result.cause));
        else
            fail_to_connect(make_failure(errc::unavailable, result.why, result.cause));
        return;
    case discovery_result::kind::misconfigured:
        refuse(make_failure(errc::misconfigured_backend, result.why));
        return;
    case discovery_result::kind::primary:
        break;
    }
    if (result.identity.max_wire_version < min_wire_version) {
        refuse(make_failure(errc::misconfigured_backend, std::string("the server ") + too_old));
        return;
    }
    where_ = result.at;
    where_.identity = result.identity;
    where_.login = credentials_;
    hello_clock_ = result.clock;
    is_member_ = !result.identity.set.empty();
    pool_ = std::make_shared<connection_pool>(strand_, where_, config_.connections);
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
    if (where_.name() != checked_name_ || !is_same_process) {
        check(checked_name_.empty() || !result.identity.is_restart_of(checked_));
        return;
    }
    if (uses_hello_clock_)
        clock_ = hello_clock_;
    // With a login, the server accepts the user when it authenticates the first connection.
    if (!where_.login)
        plan().note_accepted();
    opened();
}

void primary::check(bool all)
{
    checks_all_ = all;
    check_ = std::make_shared<server_check>(
        config_, pool_, [self = owner_.keep(*this)](const failure_ptr& why) { self->on_checked(why); },
        [self = owner_.keep(*this)](
            const answer& got, std::int32_t no_change_code) { self->warn_if_unexplained(got, no_change_code); });
    if (all)
        check_->start();
    else
        check_->learn_code();
}

void primary::on_checked(const failure_ptr& why)
{
    const auto finished_check = std::exchange(check_, nullptr);
    if (why) {
        fail_to_connect(why);
        return;
    }
    // A server with another code is of another kind.
    if (!checks_all_ && finished_check->no_change_code() != no_change_code_) {
        check(true);
        return;
    }
    set_clock(finished_check->clock());
    no_change_code_ = finished_check->no_change_code();
    checked_name_ = where_.name();
    checked_ = *where_.identity;
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
