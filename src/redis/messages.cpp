// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
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
/// Servers that answer by turns to one name must not keep us connecting.
constexpr unsigned most_detours = 4;

void wake_all(channels::completions ended)
{
    for (auto& each : ended)
        each(woken{});
}

} // namespace

client::interest::interest(std::shared_ptr<client> owner, std::shared_ptr<channel> watched, std::uint64_t seen) noexcept
    : seen(seen), owner_(std::move(owner)), watched_(std::move(watched))
{
}

client::interest::~interest()
{
    if (owner_)
        owner_->channels_.leave(*watched_, lease_clock::now());
}

client::interest client::watch(const std::string& name)
{
    auto [watched, seen] = channels_.watch(name);
    interest made(shared_from_this(), std::move(watched), seen);
    ask_for_turn();
    return made;
}

void client::wait(const std::shared_ptr<channel>& watched, const claim& who, std::uint64_t seen, completion<woken> done)
{
    if (!channels_.wait(watched, who, seen, done))
        done(woken{});
}

// In turns: whatever is due for many channels.

void client::ask_for_turn()
{
    if (turn_due_.exchange(true))
        return;
    try {
        on_strand([](client& self) {
            self.turn_due_ = false;
            self.runtime_->closes = false;
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
    if (run.polls || config_.plain())
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
    const bool lingers = !retired_ && !run.closes && config_.idle_timeout != 0ms;
    const auto unused = channels_.forget_unused(
        lease_clock::now(), lingers ? channel_linger : lease_clock::duration::zero(), most_channels_per_turn);
    if (!unused.subscribed.empty() && run.messages_ready && watched())
        unsubscribe(unused.subscribed);
    return unused.more;
}

bool client::poll_some()
{
    // Those who had begun to wait before it was known that they have to poll.
    const auto unknown =
        runtime_->polls ? channels_.take_idle(most_channels_per_turn) : std::vector<channels::channel_ptr>();
    wake_all(channels_.wake(unknown));
    auto due = channels_.take_due(lease_clock::now() - config_.poll_interval, most_channels_per_turn);
    const bool more = !unknown.empty() || due.size() >= most_channels_per_turn;
    wake_all(std::move(due));
    return more;
}

// The connection for messages.

void client::check_messages()
{
    auto& run = *runtime_;
    run.detours = 0;
    if (std::exchange(run.polls, false)) {
        // The user may have been given the right since.
        channels_.poll(config_.plain());
        channels_.begin_round();
    }
    if (run.messages_ready && messages_are_elsewhere())
        run.messages->close();
}

bool client::messages_are_elsewhere() const
{
    const auto& run = *runtime_;
    if (!(run.messages->where() == run.server))
        return true;
    return !run.run_id.empty() && !run.messages_run_id.empty() && run.run_id != run.messages_run_id;
}

void client::ensure_messages()
{
    auto& run = *runtime_;
    if (run.polls || !watched())
        return;
    if (run.messages) {
        subscribe_some();
        return;
    }
    if (run.message_retry_pending)
        return;
    // The server is found, and its refusals are met, by the connection for commands.
    if (run.now == runtime::phase::open)
        connect_messages();
    else if (run.now == runtime::phase::idle)
        connect();
}

void client::connect_messages()
{
    auto& run = *runtime_;
    auto context = run.tls ? run.tls->share() : asio::ssl::context(asio::ssl::context::tls_client);
    run.messages =
        std::make_shared<link>(run.strand, config_, run.server, config_.where.tls, std::move(context), ++run.numbers);
    run.messages_ready = false;
    run.messages_run_id.clear();
    run.subscriptions_in_flight = 0;
    exchange::start(
        run.messages,
        [self = shared_from_this()](boost::redis::request& request) {
            push_greeting(request, self->config_.where);
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
    auto& run = *runtime_;
    if (replies[0].is_error()) {
        // What passes is not worth a word. Commands may go on for long on a connection that was made before.
        if (const auto why = refusal(replies[0]); why->code != errc::unavailable)
            warn_once("the connection for messages of releases is refused, so waiters may notice a release late (" +
                      why->detail + ")");
        run.messages->close();
        return;
    }
    if (!replies[1].is_error())
        run.messages_run_id = info_field(replies[1].text, "run_id");
    if (messages_are_elsewhere()) {
        if (run.detours++ < most_detours) {
            run.messages->close();
            return;
        }
        warn_once("messages of releases come from another server than the one that keeps the locks, so waiters may "
                  "notice a release late");
    }
    run.messages_ready = true;
    run.messages->send_at_once();
    subscribe_some();
}

void client::subscribe_some()
{
    auto& run = *runtime_;
    while (run.messages_ready && !run.polls && run.subscriptions_in_flight < most_subscriptions_in_flight) {
        auto asked = channels_.take_idle(most_channels_per_turn);
        if (asked.empty())
            return;
        ++run.subscriptions_in_flight;
        // A refused SUBSCRIBE is an error where no reply is expected; the PING behind it takes that up.
        exchange::start(
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

void client::subscribed(const std::vector<channels::channel_ptr>& asked, const reply& answer)
{
    auto& run = *runtime_;
    --run.subscriptions_in_flight;
    if (!run.messages_ready)
        return;
    if (answer.is_error()) {
        // Any other refusal may have passed at the next attempt. This connection is done with either way: the PING has
        // had the answer to the SUBSCRIBE, and the next to ask would have that of the PING.
        if (refusal_code(answer.text) == errc::access_denied)
            poll_instead(answer.text);
        run.messages_ready = false;
        run.messages->close();
        return;
    }
    run.messages_backoff.reset();
    wake_all(channels_.arm(asked));
    subscribe_some();
}

void client::unsubscribe(const std::vector<std::string>& names)
{
    exchange::start(
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
        auto ended = self->channels_.changed(used->messages());
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->runtime_->messages == used)
            self->receive_messages();
        wake_all(std::move(ended));
    });
}

void client::message_link_ended()
{
    auto& run = *runtime_;
    asio::post(run.strand, [old = std::exchange(run.messages, nullptr)] {});
    run.messages_ready = false;
    channels_.begin_round();
    if (run.polls || !watched()) {
        arm_tick();
        finish_close();
        return;
    }
    run.message_retry_pending = true;
    run.message_retry.expires_after(run.messages_backoff.next());
    run.message_retry.async_wait([self = shared_from_this()](const error_code& code) {
        self->runtime_->message_retry_pending = false;
        if (!code)
            self->ensure_messages();
    });
}

void client::poll_instead(const std::string& why)
{
    runtime_->polls = true;
    channels_.poll(true);
    warn_once("messages of releases cannot be received, so waiters poll (" + why.substr(0, 100) + ")");
    arm_tick();
}

} // namespace colock::redis::detail
