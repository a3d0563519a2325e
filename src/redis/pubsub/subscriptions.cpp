// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pubsub/subscriptions.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/connection/server_settings.hpp"
#include "redis/failures.hpp"
#include "remote/policy/deadlines.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

using namespace std::chrono_literals;

/// Limit of the unanswered requests: one on its way to the server, one in the server, one on its way back, and one
/// being handled here.
constexpr unsigned max_in_flight = 4;
/// A channel is kept for a while after its last use, because the next waiter on the key often follows soon.
constexpr lease_clock::duration channel_linger = 1s;

} // namespace

subscriptions::subscriptions(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    connection_factory& factory, remote::event_reporter& reporter, session& requests, remote::wait_sources& sources)
    : listening_loop(strand, owner, requests, sources,
          config.idle_timeout == 0ms ? lease_clock::duration::zero() : channel_linger),
      config_(config), factory_(factory), reporter_(reporter), requests_(requests),
      authentication_(strand, owner, config, reporter)
{
    sources_.set_polling(polls());
}

// The connection.

void subscriptions::follow_requests()
{
    handle(plan().ready() && are_elsewhere() ? event::requests_elsewhere : event::requests_here);
}

bool subscriptions::are_elsewhere() const
{
    if (!(connection_->server() == requests_.server()))
        return true;
    const auto& other = requests_.process();
    return !other.empty() && !process_.empty() && other != process_;
}

void subscriptions::connect()
{
    if (!authentication_.is_requested())
        return make_connection();
    authentication_.request([this](const failure_ptr& failure) {
        if (!failure)
            return make_connection();
        if (failure->code != errc::unavailable)
            warn_of_refusal(*failure);
        connection_ended();
    });
}

void subscriptions::make_connection()
{
    connection_ = factory_.make(requests_.server());
    in_flight_ = 0;
    shard_request_ = {};
    requested_channels_.clear();
    unneeded_channels_.clear();
    boost::redis::request commands;
    push_hello(commands, authentication_.user(), authentication_.password(), client_name);
    commands.push("INFO", "server");
    connection_->exec(
        std::move(commands), [self = owner_.keep(*this), current = connection_](const reply_list& replies) {
            if (self->connection_ == current)
                self->on_greeting(replies);
        });
    receive();
    connection_->run([self = owner_.keep(*this), current = connection_](const error_code&) {
        current->close();
        if (self->connection_ == current)
            self->connection_ended();
    });
}

void subscriptions::on_greeting(const reply_list& replies)
{
    if (replies[0].is_error()) {
        // Only lasting errors are reported. Without the warning they might remain unnoticed, because commands may
        // continue for a long time on a connection that was made before.
        if (const auto failure = refusal(replies[0]); failure->code != errc::unavailable)
            warn_of_refusal(*failure);
        handle(event::refused);
        return;
    }
    process_ = replies[1].is_error() ? std::string() : std::string(info_field(replies[1].text, "run_id"));
    connection_->disable_nagle();
    connection_->note_established();
    authentication_.keep_valid(connection_);
    handle(are_elsewhere() ? event::connected_elsewhere : event::connected_here);
}

void subscriptions::warn_of_refusal(const failure& failure)
{
    reporter_.warn("the connection for messages of releases is refused, so waiters may notice a release late (" +
                   failure.detail + ")");
}

void subscriptions::connection_ended()
{
    authentication_.stop();
    factory_.drop(connection_);
    sources_.begin_round();
    if (config_.cluster())
        remote::wake_all(sources_.wake_if([](std::string_view) { return true; }));
    handle(event::closed);
    owner_.arm_timer();
    owner_.finish_close();
}

void subscriptions::disconnect()
{
    // There is no connection while the program is asked for credentials, or if there was no memory to create it.
    if (connection_)
        connection_->close();
    else
        connection_ended();
}

void subscriptions::receive()
{
    connection_->receive([self = owner_.keep(*this), current = connection_](const error_code& error) {
        auto& received = current->received();
        auto completions = self->sources_.wake_keys(received.messages);
        received.messages.clear();
        received.texts.clear();
        // The next receive is started first, because the waiters' completions may take long.
        if (!error && self->connection_ == current)
            self->receive();
        remote::wake_all(std::move(completions));
        if (self->connection_ == current && self->config_.cluster())
            self->read_shard_replies(std::exchange(current->received().other_replies, {}));
    });
}

// The channels.

void subscriptions::listen()
{
    if (requests_.has_sharded_channels())
        return listen_to_shard();
    while (plan().ready() && in_flight_ < max_in_flight) {
        auto requested = sources_.take_unrequested(remote::max_per_handler);
        if (requested.empty())
            return;
        ++in_flight_;
        // The driver expects no reply to SUBSCRIBE, but the server answers a refused SUBSCRIBE with an error. The
        // driver takes this error for the reply to the next request, so a PING follows.
        std::vector<std::string_view> names;
        names.reserve(requested.size());
        for (const auto& each : requested)
            names.push_back(each->name);
        boost::redis::request commands;
        // The driver's own subscription tracking is not used, because the driver never reconnects here.
        commands.push_range("SUBSCRIBE", names);
        commands.push("PING");
        connection_->exec(std::move(commands),
            [self = owner_.keep(*this), current = connection_, requested](const reply_list& replies) {
                if (self->connection_ == current)
                    self->subscribed(requested, replies[0]);
            });
    }
}

void subscriptions::listen_elsewhere()
{
    reporter_.warn("messages of releases come from another server than the one that keeps the locks, so waiters may "
                   "notice a release late");
    listen();
}

void subscriptions::subscribed(const source_list& requested, const reply& answer)
{
    --in_flight_;
    if (!plan().ready())
        return;
    if (!answer.is_error()) {
        remote::wake_all(sources_.activate(requested));
        handle(event::confirmed);
        return;
    }
    // The PING has received the reply to the SUBSCRIBE, so the next request would receive the reply to the PING. The
    // connection cannot be used further.
    refused(answer);
}

void subscriptions::refused(const reply& answer)
{
    const auto failure = refusal(answer);
    // The server may also refuse SUBSCRIBE or PING as unknown. A new connection would have the same result.
    const bool denied = failure->code == errc::access_denied || is_command_refused(answer.text);
    if (denied)
        reporter_.warn("messages of releases cannot be received, so waiters poll (" + failure->detail + ")");
    handle(denied ? event::denied : event::refused);
}

void subscriptions::listen_to_shard()
{
    if (!plan().ready() || !shard_request_.is_answered())
        return;
    const auto requested = sources_.take_unrequested(remote::max_per_handler);
    if (requested.empty() && unneeded_channels_.empty())
        return;
    for (const auto& each : requested)
        requested_channels_.push_back(each->name);
    boost::redis::request commands;
    shard_request_ = shard_request(commands, std::exchange(unneeded_channels_, {}), requested_channels_);
    connection_->exec(
        std::move(commands), [self = owner_.keep(*this), current = connection_](const reply_list& replies) {
            if (self->connection_ == current)
                self->read_shard_replies(replies);
        });
}

void subscriptions::read_shard_replies(const reply_list& replies)
{
    // The confirmations have arrived before the replies that follow them.
    for (const auto& [channel, is_active] : std::exchange(connection_->received().changes, {}))
        remote::wake_all(sources_.set_active(channel, is_active));
    if (!plan().ready() || shard_request_.is_answered())
        return;
    for (const auto& each : replies) {
        if (!shard_request_.accept(each))
            return refused(each);
    }
    if (!shard_request_.is_answered())
        return;
    // The node does not own the slots of the other channels. The next attempts of the waiters find the owner.
    for (const auto& each : std::exchange(requested_channels_, {})) {
        if (!sources_.is_active(each))
            remote::wake_all(sources_.set_active(each, false));
    }
    handle(event::confirmed);
}

void subscriptions::stop_listening(const std::vector<std::string>& names)
{
    if (requests_.has_sharded_channels()) {
        unneeded_channels_.insert(unneeded_channels_.end(), names.begin(), names.end());
        return listen_to_shard();
    }
    boost::redis::request commands;
    commands.push_range("UNSUBSCRIBE", names);
    commands.push("PING");
    connection_->exec(std::move(commands), [current = connection_](const reply_list& replies) {
        // As with a refused SUBSCRIBE, each request would now receive the reply to the previous one.
        if (replies[0].is_error())
            current->close();
    });
}

bool subscriptions::polls() const noexcept
{
    // A node without sharded channels may be replaced by one that has them, whose messages do not reach its clients.
    return plan().polls() || config_.plain() || (config_.cluster() && !requests_.has_sharded_channels());
}

std::optional<lease_clock::duration> subscriptions::longest_wait() const
{
    return polls() || config_.cluster() ? std::optional<lease_clock::duration>(config_.poll_interval) : std::nullopt;
}

} // namespace colock::inline v0::redis::detail
