// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/subscriptions.hpp"

#include "redis/exchange.hpp"
#include "redis/failures.hpp"
#include "redis/server_check.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

/// More than that is done in turns, between which the event loop can do something else.
constexpr std::size_t most_channels_per_turn = 256;
/// One on its way there, one in the server, one on its way back, and one here.
constexpr unsigned most_in_flight = 4;
/// A channel is kept a little after its last use: the next waiter on the same key is often on its way.
constexpr lease_clock::duration channel_linger = 1s;

void wake_all(remote::wait_sources::completions ended)
{
    for (auto& each : ended)
        each(woken{});
}

} // namespace

subscriptions::subscriptions(const asio::any_io_executor& strand, remote::parts_owner& owner, const settings& config,
    links& made_by, remote::reports& told, session& requests, remote::wait_sources& sources)
    : strand_(strand), owner_(owner), config_(config), links_(made_by), reports_(told), requests_(requests),
      sources_(sources), retry_(strand)
{
    sources_.poll(polls());
}

void subscriptions::on(event what)
{
    using kind = plan_type::action::kind;
    const auto decided = plan_.next(what, {.wanted = !sources_.empty(), .requests = requests_.plan().current()});
    sources_.poll(polls());
    switch (decided.what) {
    case kind::none:
        return;
    case kind::connect:
        connect();
        return;
    case kind::connect_requests:
        requests_.on(session::event::wanted);
        return;
    case kind::listen_elsewhere:
        reports_.warn_once("messages of releases come from another server than the one that keeps the locks, so "
                           "waiters may notice a release late");
        subscribe_some();
        return;
    case kind::listen:
        subscribe_some();
        return;
    case kind::close:
        // There is none if there was no memory for it.
        if (link_)
            link_->close();
        else
            on(event::ended);
        return;
    case kind::ask_anew:
        sources_.begin_round();
        return;
    case kind::wait:
        retry_in(decided.delay);
        return;
    case kind::stop_waiting:
        retry_.cancel();
        return;
    }
}

// The connection.

void subscriptions::follow_requests()
{
    on(plan_.ready() && are_elsewhere() ? event::requests_elsewhere : event::requests_here);
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

void subscriptions::retry_in(lease_clock::duration delay)
{
    retry_.expires_after(delay);
    retry_.async_wait([self = owner_.keep(*this)](const error_code& code) {
        if (!code)
            self->on(event::due);
    });
}

void subscriptions::receive()
{
    link_->receive([self = owner_.keep(*this), used = link_](const error_code& code) {
        auto ended = self->sources_.changed(used->messages());
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->link_ == used)
            self->receive();
        wake_all(std::move(ended));
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

void subscriptions::subscribe_some()
{
    while (plan_.ready() && in_flight_ < most_in_flight) {
        auto asked = sources_.take_idle(most_channels_per_turn);
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

void subscriptions::subscribed(const source_list& asked, const reply& answer)
{
    --in_flight_;
    if (!plan_.ready())
        return;
    if (!answer.is_error()) {
        wake_all(sources_.arm(asked));
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

void subscriptions::unsubscribe(const std::vector<std::string>& names)
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

void subscriptions::sweep()
{
    bool more = forget_unused();
    if (polls())
        more = poll_some() || more;
    if (!more || sweeping_)
        return;
    sweeping_ = true;
    asio::post(strand_, [self = owner_.keep(*this)] {
        self->sweeping_ = false;
        self->sweep();
        self->owner_.arm_turn();
    });
}

bool subscriptions::forget_unused()
{
    const auto& requests = requests_.plan();
    const bool lingers = !requests.retired() && !requests.closes() && config_.idle_timeout != 0ms;
    const auto unused = sources_.forget_unused(
        lease_clock::now(), lingers ? channel_linger : lease_clock::duration::zero(), most_channels_per_turn);
    if (!unused.asked.empty() && plan_.ready() && !sources_.empty())
        unsubscribe(unused.asked);
    return unused.more;
}

bool subscriptions::poll_some()
{
    // Those who had begun to wait before it was known that they have to poll.
    const auto unknown = plan_.polls() ? sources_.take_idle(most_channels_per_turn) : source_list();
    wake_all(sources_.wake(unknown));
    auto due = sources_.take_due(lease_clock::now() - config_.poll_interval, most_channels_per_turn);
    const bool more = !unknown.empty() || due.size() >= most_channels_per_turn;
    wake_all(std::move(due));
    return more;
}

} // namespace colock::redis::detail
