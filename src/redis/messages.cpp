// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/exchange.hpp"
#include "redis/failures.hpp"
#include "redis/greeting.hpp"
#include "redis/runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;

/// More than that is done in turns, between which the event loop can do something else.
constexpr std::size_t most_channels_per_turn = 256;
/// One on its way there, one in the server, one on its way back, and one here.
constexpr unsigned most_subscriptions_in_flight = 4;
/// A channel is kept a little after its last use: the next waiter on the same key is often on its way.
constexpr lease_clock::duration channel_linger = 1s;

void wake_all(remote::wait_sources::completions ended)
{
    for (auto& each : ended)
        each(woken{});
}

} // namespace

remote::interest client::watch(const std::string& channel)
{
    remote::interest made(std::shared_ptr<remote::wait_sources>(shared_from_this(), &sources_), channel);
    ask_for_turn();
    return made;
}

// In turns: whatever is due for many channels.

void client::ask_for_turn()
{
    if (turn_due_.exchange(true))
        return;
    try {
        on_strand([](client& self) {
            self.turn_due_ = false;
            self.runtime_->life.reopen();
            self.ensure_messages();
            self.arm_tick();
        });
    } catch (...) {
        turn_due_ = false;
        throw;
    }
}

void client::sweep_channels()
{
    auto& run = *runtime_;
    bool more = forget_unused();
    if (run.listening.polls() || config_.plain())
        more = poll_some() || more;
    if (!more || run.sweeping)
        return;
    run.sweeping = true;
    asio::post(run.strand, [self = shared_from_this()] {
        self->runtime_->sweeping = false;
        self->sweep_channels();
        self->arm_tick();
    });
}

bool client::forget_unused()
{
    auto& run = *runtime_;
    const bool lingers = !run.life.retired() && !run.life.closes() && config_.idle_timeout != 0ms;
    const auto unused = sources_.forget_unused(
        lease_clock::now(), lingers ? channel_linger : lease_clock::duration::zero(), most_channels_per_turn);
    if (!unused.asked.empty() && run.listening.ready() && watched())
        unsubscribe(unused.asked);
    return unused.more;
}

bool client::poll_some()
{
    // Those who had begun to wait before it was known that they have to poll.
    const auto unknown = runtime_->listening.polls() ? sources_.take_idle(most_channels_per_turn)
                                                     : std::vector<remote::wait_sources::source_ptr>();
    wake_all(sources_.wake(unknown));
    auto due = sources_.take_due(lease_clock::now() - config_.poll_interval, most_channels_per_turn);
    const bool more = !unknown.empty() || due.size() >= most_channels_per_turn;
    wake_all(std::move(due));
    return more;
}

// The connection for messages.

void client::check_messages()
{
    using event = remote::listening_plan::event;
    const bool elsewhere = runtime_->listening.ready() && messages_are_elsewhere();
    carry_out(decide(elsewhere ? event::requests_elsewhere : event::requests_here));
}

bool client::messages_are_elsewhere() const
{
    const auto& run = *runtime_;
    if (!(run.messages->where() == run.server))
        return true;
    return !run.known_by.process.empty() && !run.messages_run_id.empty() && run.known_by.process != run.messages_run_id;
}

void client::ensure_messages()
{
    carry_out(decide(remote::listening_plan::event::wanted));
}

remote::listening_plan::action client::decide(remote::listening_plan::event what)
{
    return runtime_->listening.next(what, {.wanted = watched(), .requests = runtime_->life.current()});
}

void client::carry_out(const remote::listening_plan::action& decided)
{
    using kind = remote::listening_plan::action::kind;
    switch (decided.what) {
    case kind::none:
        return;
    case kind::connect:
        connect_messages();
        return;
    case kind::connect_requests:
        carry_out(decide(remote::connection_plan::event::wanted));
        return;
    case kind::listen_elsewhere:
        runtime_->told.warn_once(
            "messages of releases come from another server than the one that keeps the locks, so waiters may "
            "notice a release late");
        subscribe_some();
        return;
    case kind::listen:
        subscribe_some();
        return;
    case kind::poll:
        sources_.poll(true);
        runtime_->messages->close();
        arm_tick();
        return;
    case kind::close:
        // There is none if there was no memory for it.
        if (runtime_->messages)
            runtime_->messages->close();
        else
            carry_out(decide(remote::listening_plan::event::ended));
        return;
    case kind::ask_anew:
        sources_.poll(config_.plain());
        sources_.begin_round();
        return;
    case kind::wait:
        connect_messages_in(decided.delay);
        return;
    case kind::stop_waiting:
        runtime_->message_retry.cancel();
        return;
    }
}

void client::connect_messages_in(lease_clock::duration delay)
{
    auto& run = *runtime_;
    run.message_retry.expires_after(delay);
    run.message_retry.async_wait([self = shared_from_this()](const error_code& code) {
        if (!code)
            self->carry_out(self->decide(remote::listening_plan::event::due));
    });
}

void client::connect_messages()
{
    auto& run = *runtime_;
    run.messages = run.made.make(run.server);
    run.subscriptions_in_flight = 0;
    exchange(
        run.messages,
        [self = shared_from_this()](boost::redis::request& request) {
            const auto& who = self->config_.where;
            push_hello(request, who.user, who.password, our_name);
            request.push("INFO", "server");
        },
        [self = shared_from_this(), used = run.messages](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->runtime_->messages == used)
                self->messages_greeted(replies);
        });
    receive_messages();
    run.messages->run([self = shared_from_this(), used = run.messages](const error_code&) {
        used->close();
        if (self->runtime_->messages == used)
            self->message_link_ended();
    });
}

void client::messages_greeted(const reply_list& replies)
{
    using event = remote::listening_plan::event;
    auto& run = *runtime_;
    if (replies[0].is_error()) {
        // What passes is not worth a word. Commands may go on for long on a connection that was made before.
        if (const auto why = refusal(replies[0]); why->code != errc::unavailable)
            runtime_->told.warn_once(
                "the connection for messages of releases is refused, so waiters may notice a release late (" +
                why->detail + ")");
        carry_out(decide(event::refused));
        return;
    }
    run.messages_run_id = replies[1].is_error() ? std::string() : std::string(info_field(replies[1].text, "run_id"));
    run.messages->send_at_once();
    carry_out(decide(messages_are_elsewhere() ? event::greeted_elsewhere : event::greeted_here));
}

void client::subscribe_some()
{
    auto& run = *runtime_;
    while (run.listening.ready() && run.subscriptions_in_flight < most_subscriptions_in_flight) {
        auto asked = sources_.take_idle(most_channels_per_turn);
        if (asked.empty())
            return;
        ++run.subscriptions_in_flight;
        // A refused SUBSCRIBE is an error where no reply is expected; the PING behind it takes that up.
        exchange(
            run.messages,
            [&asked](boost::redis::request& request) {
                std::vector<std::string_view> names;
                names.reserve(asked.size());
                for (const auto& each : asked)
                    names.push_back(each->name);
                // The driver need not know them: no connection of ours is made anew by it.
                request.push_range("SUBSCRIBE", names);
                request.push("PING");
            },
            [self = shared_from_this(), used = run.messages, asked](delivery how, const reply_list& replies) {
                if (how == delivery::answered && self->runtime_->messages == used)
                    self->subscribed(asked, replies[0]);
            });
    }
}

void client::subscribed(const std::vector<remote::wait_sources::source_ptr>& asked, const reply& answer)
{
    auto& run = *runtime_;
    --run.subscriptions_in_flight;
    if (!run.listening.ready())
        return;
    using event = remote::listening_plan::event;
    if (!answer.is_error()) {
        wake_all(sources_.arm(asked));
        carry_out(decide(event::confirmed));
        return;
    }
    // The PING has had the answer to the SUBSCRIBE, and the next to ask would have that of the PING.
    const bool denied = refusal_code(answer.text) == errc::access_denied;
    if (denied)
        runtime_->told.warn_once(
            "messages of releases cannot be received, so waiters poll (" + answer.text.substr(0, 100) + ")");
    carry_out(decide(denied ? event::denied : event::refused));
}

void client::unsubscribe(const std::vector<std::string>& names)
{
    exchange(
        runtime_->messages,
        [&names](boost::redis::request& request) {
            request.push_range("UNSUBSCRIBE", names);
            request.push("PING");
        },
        [self = shared_from_this(), used = runtime_->messages](delivery how, const reply_list& replies) {
            // As with a refused SUBSCRIBE.
            if (how == delivery::answered && replies[0].is_error())
                used->close();
        });
}

void client::receive_messages()
{
    auto& run = *runtime_;
    run.messages->receive([self = shared_from_this(), used = run.messages](const error_code& code) {
        auto ended = self->sources_.changed(used->messages());
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->runtime_->messages == used)
            self->receive_messages();
        wake_all(std::move(ended));
    });
}

void client::message_link_ended()
{
    runtime_->made.drop(runtime_->messages);
    sources_.begin_round();
    carry_out(decide(remote::listening_plan::event::ended));
    arm_tick();
    finish_close();
}

} // namespace colock::redis::detail
