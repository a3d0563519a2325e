// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/session.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/failures.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace colock::inline v0::redis::detail {

session::session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    connection_factory& factory, remote::event_reporter& reporter, fence_anchor& anchor,
    std::atomic<bool>& replicas_seen)
    : connection_loop(strand, owner, reporter, saturating_cast(config.idle_timeout)), config_(config),
      factory_(factory), anchor_(anchor), replicas_seen_(replicas_seen)
{
}

void session::connect()
{
    try {
        if (auto warning = factory_.read_tls_files())
            reports_.warn(*warning);
    } catch (const error& refused) {
        refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
        return;
    }
    where_ = {};
    const auto& place = config_.where;
    if (place.master.empty()) {
        connect_to(place.socket_path.empty() ? place.hosts.front() : endpoint{});
        return;
    }
    search_ = std::make_shared<sentinel_search>(
        factory_, config_, [self = owner_.keep(*this)](const endpoint& master, const failure_ptr& why) {
            if (why)
                self->fail_to_connect(why);
            else
                self->on_named(master);
        });
    search_->start();
}

void session::on_named(const endpoint& master)
{
    if (unconfirmed_ && master == where_) {
        accept(*std::exchange(unconfirmed_, std::nullopt));
        return;
    }
    drop_connection();
    connect_to(master);
}

void session::connect_to(const endpoint& where)
{
    where_ = where;
    connection_ = factory_.make(where);
    setup_ = std::make_shared<connection_setup>(connection_,
        connection_setup::setup_context{config_, lost_, anchor_, reports_, replicas_seen_, sorted_sets_refused_},
        [self = owner_.keep(*this)](const failure_ptr& refused, const connection_setup::identity& identity) {
            self->on_set_up(refused, identity);
        });
    setup_->start();
    connection_->run([self = owner_.keep(*this), current = connection_](const error_code& code) {
        // The driver may still hold requests that wait for a connection. Closing ends them.
        current->close();
        if (self->connection_ == current)
            self->connection_ended(current->translate_error(code));
    });
}

void session::on_set_up(const failure_ptr& refused, const connection_setup::identity& identity)
{
    setup_ = nullptr;
    if (refused) {
        if (!try_next_address(refused))
            fail_to_connect(refused);
        return;
    }
    connection_->note_established();
    if (!search_) {
        accept(identity);
        return;
    }
    // The server may have been paused before it has answered, and replaced meanwhile. It would not know that, and
    // confirm and grant locks that the new master has granted to others.
    unconfirmed_ = identity;
    search_->confirm(where_);
}

void session::accept(const connection_setup::identity& identity)
{
    if (const auto old = std::exchange(search_, nullptr))
        old->stop();
    identity_ = identity;
    plan().note_accepted();
    opened();
}

void session::connection_ended(const error_code& code)
{
    const auto untrusted = plan().open() ? nullptr : connection_->certificate_failure(code);
    const auto why = untrusted ? untrusted : lost_connection(address(), code);
    if (try_next_address(why))
        return;
    if (untrusted) {
        refuse(untrusted);
        return;
    }
    set_problem(plan().demoted() ? make_replica_failure() : why);
    on(code == asio::error::timed_out ? event::silent : event::lost, code);
}

bool session::try_next_address(const failure_ptr& why)
{
    // There is a search only until the connection is open. A server that ends an accepted connection is tried again
    // after a delay.
    const auto search = search_;
    if (!search || unconfirmed_)
        return false;
    drop_connection();
    search->request_next(why);
    return true;
}

void session::give_up()
{
    if (!plan().open() || !owner_.demand().has_in_flight)
        return;
    on(event::given_up);
    connection_->close();
}

void session::disconnect()
{
    if (const auto old = std::exchange(search_, nullptr))
        old->stop();
    drop_connection();
}

void session::drop_connection()
{
    unconfirmed_.reset();
    if (const auto old = std::exchange(setup_, nullptr))
        old->stop();
    if (connection_)
        connection_->close();
    factory_.drop(connection_);
}

std::string session::address() const
{
    const auto& place = config_.where;
    if (!place.socket_path.empty())
        return place.socket_path;
    // Of a single server, the address is known before the first attempt to connect.
    if (place.master.empty())
        return to_text(place.hosts.front());
    if (!where_.host.empty())
        return to_text(where_);
    std::string all;
    for (const auto& each : place.hosts)
        all += (all.empty() ? "" : ",") + to_text(each);
    return all;
}

} // namespace colock::inline v0::redis::detail
