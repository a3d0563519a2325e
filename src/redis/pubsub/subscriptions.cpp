// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pubsub/subscriptions.hpp"

#include "redis/connection/server_check.hpp"
#include "redis/failures.hpp"
#include "redis/pipeline/exchange.hpp"
#include "remote/policy/deadlines.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

/// One on its way there, one in the server, one on its way back, and one here.
constexpr unsigned most_in_flight = 4;
/// A channel is kept a little after its last use: the next waiter on the same key is often on its way.
constexpr lease_clock::duration channel_linger = 1s;

} // namespace

subscriptions::subscriptions(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    connection_factory& made_by, remote::event_reporter& told, session& requests, remote::wait_sources& sources)
    : listening_loop(strand, owner, requests, sources,
          config.idle_timeout == 0ms ? lease_clock::duration::zero() : channel_linger),
      config_(config), links_(made_by), reports_(told), requests_(requests)
{
    sources_.poll(polls());
}

// The connection.

void subscriptions::follow_requests()
{
    on(plan().ready() && are_elsewhere() ? event::requests_elsewhere : event::requests_here);
}

bool subscriptions::are_elsewhere() const
{
    if (!(link_->where() == requests_.where()))
        return true;
    const auto& other = requests_.process();
    return !other.empty() && !process_.empty() && other != process_;
}

void subscriptions::connect()
{
    link_ = links_.make(requests_.where());
    in_flight_ = 0;
    exchange(
        link_,
        [self = owner_.keep(*this)](boost::redis::request& request) {
            const auto& who = self->config_.where;
            push_hello(request, who.user, who.password, our_name);
            request.push("INFO", "server");
        },
        [self = owner_.keep(*this), used = link_](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->link_ == used)
                self->greeted(replies);
        });
    receive();
    link_->run([self = owner_.keep(*this), used = link_](const error_code&) {
        used->close();
        if (self->link_ == used)
            self->link_ended();
    });
}

void subscriptions::greeted(const reply_list& replies)
{
    if (replies[0].is_error()) {
        // What passes is not worth a word. Commands may go on for long on a connection that was made before.
        if (const auto why = refusal(replies[0]); why->code != errc::unavailable)
            reports_.warn_once("the connection for messages of releases is refused, so waiters may notice a release "
                               "late (" +
                               why->detail + ")");
        on(event::refused);
        return;
    }
    process_ = replies[1].is_error() ? std::string() : std::string(info_field(replies[1].text, "run_id"));
    link_->send_at_once();
    on(are_elsewhere() ? event::greeted_elsewhere : event::greeted_here);
}

void subscriptions::link_ended()
{
    links_.drop(link_);
    sources_.begin_round();
    on(event::ended);
    owner_.arm_turn();
    owner_.finish_close();
}

void subscriptions::disconnect()
{
    // There is none if there was no memory for it.
    if (link_)
        link_->close();
    else
        on(event::ended);
}

void subscriptions::receive()
{
    link_->receive([self = owner_.keep(*this), used = link_](const error_code& code) {
        auto ended = self->sources_.changed(used->messages());
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->link_ == used)
            self->receive();
        remote::wake_all(std::move(ended));
    });
}

void subscriptions::forked()
{
    if (link_)
        link_->disown();
    links_.drop(link_);
    on(event::forked);
}

// The channels.

void subscriptions::listen()
{
    while (plan().ready() && in_flight_ < most_in_flight) {
        auto asked = sources_.take_idle(remote::most_per_turn);
        if (asked.empty())
            return;
        ++in_flight_;
        // A refused SUBSCRIBE is an error where no reply is expected; the PING behind it takes that up.
        exchange(
            link_,
            [&asked](boost::redis::request& request) {
                std::vector<std::string_view> names;
                names.reserve(asked.size());
                for (const auto& each : asked)
                    names.push_back(each->name);
                // The driver need not know them: no connection of ours is made anew by it.
                request.push_range("SUBSCRIBE", names);
                request.push("PING");
            },
            [self = owner_.keep(*this), used = link_, asked](delivery how, const reply_list& replies) {
                if (how == delivery::answered && self->link_ == used)
                    self->subscribed(asked, replies[0]);
            });
    }
}

void subscriptions::listen_elsewhere()
{
    reports_.warn_once(
        "messages of releases come from another server than the one that keeps the locks, so waiters may "
        "notice a release late");
    listen();
}

void subscriptions::subscribed(const source_list& asked, const reply& answer)
{
    --in_flight_;
    if (!plan().ready())
        return;
    if (!answer.is_error()) {
        remote::wake_all(sources_.arm(asked));
        on(event::confirmed);
        return;
    }
    // The PING has had the answer to the SUBSCRIBE, and the next to ask would have that of the PING.
    const auto why = refusal(answer);
    // Or one of the two commands is not there. To ask again on a new connection would bring the same answer.
    const bool denied = why->code == errc::access_denied || is_command_refused(answer.text);
    if (denied)
        reports_.warn_once("messages of releases cannot be received, so waiters poll (" + why->detail + ")");
    on(denied ? event::denied : event::refused);
}

void subscriptions::stop_listening(const std::vector<std::string>& names)
{
    exchange(
        link_,
        [&names](boost::redis::request& request) {
            request.push_range("UNSUBSCRIBE", names);
            request.push("PING");
        },
        [used = link_](delivery how, const reply_list& replies) {
            // As with a refused SUBSCRIBE.
            if (how == delivery::answered && replies[0].is_error())
                used->close();
        });
}

std::optional<lease_clock::duration> subscriptions::max_wait() const
{
    return polls() ? std::optional<lease_clock::duration>(config_.poll_interval) : std::nullopt;
}

} // namespace colock::redis::detail
