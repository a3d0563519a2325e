// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/session.hpp"

#include "redis/connection/server_check.hpp"
#include "redis/failures.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include <utility>

namespace colock::redis::detail {

session::session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    connection_factory& made_by, remote::event_reporter& told, fence_anchor& anchor, std::atomic<bool>& replicas_seen)
    : connection_loop(strand, owner, told, saturating_cast(config.idle_timeout)), config_(config), links_(made_by),
      anchor_(anchor), replicas_seen_(replicas_seen)
{
}

void session::connect()
{
    try {
        if (auto warning = links_.read_tls_files())
            reports_.warn_once(std::move(*warning));
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
        links_, config_, [self = owner_.keep(*this)](const endpoint& master, const failure_ptr& why) {
            self->search_ = nullptr;
            if (why)
                self->fail_to_connect(why);
            else
                self->connect_to(master);
        });
    search_->start();
}

void session::connect_to(const endpoint& where)
{
    where_ = where;
    link_ = links_.make(where);
    setup_ = std::make_shared<connection_setup>(link_,
        connection_setup::surroundings{config_, lost_, anchor_, reports_, replicas_seen_},
        [self = owner_.keep(*this)](const failure_ptr& refused, const connection_setup::identity& known_by) {
            self->set_up(refused, known_by);
        });
    setup_->start();
    link_->run([self = owner_.keep(*this), used = link_](const error_code& code) {
        // What waits for a connection in the driver is told that there is none.
        used->close();
        if (self->link_ == used)
            self->link_ended(used->loss(code));
    });
}

void session::set_up(const failure_ptr& refused, const connection_setup::identity& known_by)
{
    setup_ = nullptr;
    if (refused) {
        fail_to_connect(refused);
        return;
    }
    known_by_ = known_by;
    opened();
}

void session::link_ended(const error_code& code)
{
    if (!plan().open() && code.category() == asio::error::get_ssl_category()) {
        const auto why = link_->certificate_problem();
        refuse(make_failure(errc::misconfigured_backend,
            "no trusted TLS connection to the server: " + (why.empty() ? code.message() : why), code));
        return;
    }
    set_problem(plan().demoted() ? replica_in_place_of_master() : lost_connection(code));
    on(code == asio::error::timed_out ? event::silent : event::lost, code);
}

void session::disconnect()
{
    if (const auto old = std::exchange(search_, nullptr))
        old->stop();
    if (const auto old = std::exchange(setup_, nullptr))
        old->stop();
    if (link_)
        link_->close();
    links_.drop(link_);
}

std::string session::address() const
{
    const auto& place = config_.where;
    if (!place.socket_path.empty())
        return place.socket_path;
    if (place.master.empty() || !where_.host.empty())
        return to_text(where_);
    std::string all;
    for (const auto& each : place.hosts)
        all += (all.empty() ? "" : ",") + to_text(each);
    return all;
}

void session::forked()
{
    lost_.inherit(links_.last());
    if (const auto old = std::exchange(search_, nullptr))
        old->disown();
    if (const auto old = std::exchange(setup_, nullptr))
        old->stop();
    if (link_)
        link_->disown();
    links_.drop(link_);
    on(event::forked);
}

} // namespace colock::redis::detail
