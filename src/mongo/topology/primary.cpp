// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/primary.hpp"

#include "mongo/driver/driver.hpp"
#include "mongo/topology/hello.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>

#include <string>
#include <utility>

namespace colock::mongo::detail {

namespace {

/// Of MongoDB 5.0.
constexpr int least_wire_version = 13;

} // namespace

primary::primary(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& told, std::function<void()> room)
    : connection_loop(strand, owner, told, saturating_cast(config.idle_timeout)), strand_(strand), config_(config),
      room_(std::move(room)), tls_files_(config.tls)
{
    const auto& who = config.where;
    if (who.user.empty())
        return;
    prepare_cryptography();
    credentials_ = std::make_shared<const credentials>(credentials{
        .user = who.user, .password = who.password, .source = who.auth_source, .mechanism = who.auth_mechanism});
}

bool primary::has_room() noexcept
{
    return lanes_ && plan().takes_requests() && lanes_->has_room();
}

void primary::ask(task_ptr what, lease_clock::time_point deadline)
{
    if (lanes_ && plan().open()) {
        note_use();
        lanes_->ask(std::move(what), deadline);
    } else {
        asio::post(strand_, [what = std::move(what)] { what->performed(); });
    }
}

void primary::ask_next(task& answered, task_ptr what)
{
    if (lanes_ && plan().open()) {
        note_use();
        answered.follow_with(std::move(what));
    } else {
        ask(std::move(what));
    }
}

void primary::give_up(const task& what)
{
    if (lanes_)
        lanes_->give_up(what);
}

void primary::heard(const answer& got)
{
    if (!plan().open())
        return;
    // Others may have ended with it, unnoticed so far.
    if (got.what == answer::kind::unknown && got.code == 0 && lanes_)
        lanes_->close_free();
    if (!is_leaving(got))
        return;
    set_problem(failure_of(got));
    lose(problem()->cause ? problem()->cause : asio::error::connection_reset);
}

std::optional<answer> primary::heard_hello(const answer& got)
{
    const hello said(got.reply);
    if (!said.writable)
        return not_writable("it is " + said.state);
    clock_.heard(said.local_time, got.asked);
    return std::nullopt;
}

bool primary::accepts_unconfirmed(const answer& to_confirmation)
{
    if (!is_denial(to_confirmation))
        return false;
    reports_.warn_once("this user may not write to the collection, so what is read is not confirmed by a majority: a "
                       "server that was the primary once may answer is_locked, list and group from old data");
    return true;
}

void primary::give_up_all()
{
    if (!plan().open())
        return;
    on(event::given_up);
    lose(asio::error::operation_aborted);
}

void primary::stale()
{
    set_problem(make_failure(errc::unavailable, "the connection was lost", asio::error::connection_reset));
    lose(problem()->cause);
}

/// All that is under way fails with that.
void primary::lose(const error_code& why)
{
    const auto old = std::exchange(lanes_, nullptr);
    on(event::lost, why);
    if (old)
        asio::post(strand_, [old] { old->close_all(); });
}

void primary::connect()
{
    if (config_.where.tls) {
        try {
            if (auto warning = tls_files_.refresh())
                reports_.warn_once(std::move(*warning));
            tls_.emplace(tls_files_.context());
        } catch (const error& refused) {
            refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
            return;
        }
    }
    discovery_params whom{.replica_set = config_.where.replica_set, .direct = config_.where.direct};
    for (const auto& each : config_.where.hosts)
        whom.hosts.push_back({.host = each.host,
            .port = each.port,
            .tls = tls_ ? &*tls_ : nullptr,
            .server_name = config_.tls.server_name});
    scout_ = std::make_shared<server_discovery>(strand_, std::move(whom));
    scout_->start(lease_clock::now() + config_.connect_timeout,
        [self = owner_.keep(*this)](const discovery_result& what) { self->found(what); });
}

void primary::found(const discovery_result& what)
{
    // It is among its own callers.
    asio::post(strand_, [old = std::exchange(scout_, nullptr)] {});
    switch (what.what) {
    case discovery_result::kind::nobody:
        if (what.cause.category() == asio::error::get_ssl_category())
            refuse(make_failure(errc::misconfigured_backend, "no trusted TLS connection: " + what.why, what.cause));
        else
            fail_to_connect(make_failure(
                errc::unavailable, what.why, what.cause ? what.cause : error_code(asio::error::host_unreachable)));
        return;
    case discovery_result::kind::misconfigured:
        refuse(make_failure(errc::misconfigured_backend, what.why));
        return;
    case discovery_result::kind::primary:
        break;
    }
    if (what.max_wire_version < least_wire_version) {
        refuse(make_failure(errc::misconfigured_backend, "the server is older than MongoDB 5.0"));
        return;
    }
    where_ = what.at;
    where_.as = credentials_;
    clock_.heard(what.server_time, what.asked);
    is_member_ = !what.replica_set.empty();
    lanes_ = std::make_shared<connection_pool>(strand_, where_, config_.connections);
    // The lanes are ours: they do not keep us.
    lanes_->on_room([this, all = owner_.weak_from_this()] {
        if (const auto kept = all.lock(); kept && plan().takes_requests())
            room_();
    });
    lanes_->on_all_stale([this, all = owner_.weak_from_this()] {
        if (const auto kept = all.lock(); kept && plan().open())
            stale();
    });
    if (where_.name() == checked_)
        opened();
    else
        check();
}

void primary::check()
{
    check_ = std::make_shared<server_check>(
        config_, lanes_, clock_, [self = owner_.keep(*this)](const failure_ptr& why) { self->checked(why); });
    if (checked_.empty())
        check_->start();
    else
        check_->learn_code();
}

void primary::checked(const failure_ptr& why)
{
    const auto ended = std::exchange(check_, nullptr);
    if (why) {
        fail_to_connect(why);
        return;
    }
    no_change_code_ = ended->no_change_code();
    checked_ = where_.name();
    opened();
}

void primary::disconnect()
{
    if (const auto old = std::exchange(scout_, nullptr))
        old->close();
    if (const auto old = std::exchange(check_, nullptr))
        old->stop();
    // By a handler of its own: the one that runs may be among its tasks.
    if (const auto old = std::exchange(lanes_, nullptr))
        asio::post(strand_, [old] { old->close_all(); });
}

void primary::forked()
{
    scout_.reset();
    if (const auto old = std::exchange(check_, nullptr))
        old->stop();
    lanes_.reset();
    on(event::forked);
}

} // namespace colock::mongo::detail
