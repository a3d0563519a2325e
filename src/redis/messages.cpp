// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::redis::detail {

namespace {

constexpr std::size_t most_channels_per_request = 256;

} // namespace

client::interest::interest(std::shared_ptr<client> owner, std::shared_ptr<channel> watched, std::uint64_t seen) noexcept
    : seen(seen), owner_(std::move(owner)), watched_(std::move(watched))
{
}

client::interest::~interest()
{
    if (owner_)
        owner_->leave(watched_);
}

client::interest client::watch(const std::string& name)
{
    std::shared_ptr<channel> watched;
    std::uint64_t seen = 0;
    {
        const std::lock_guard guard(wait_mutex_);
        auto& known = channels_[name];
        if (!known)
            known = std::make_shared<channel>(name);
        ++known->interested;
        watched = known;
        // On a channel that is armed already, a message may have passed since the watcher last looked at the lock.
        if (known->now != channel::state::armed)
            seen = known->changes.load(std::memory_order_relaxed);
    }
    on_strand([](client& self) {
        self.ensure_messages();
        self.arm_tick();
    });
    return {shared_from_this(), std::move(watched), seen};
}

int client::listens(const std::string& name) const
{
    const std::lock_guard guard(wait_mutex_);
    const auto found = channels_.find(name);
    return found != channels_.end() && found->second->now == channel::state::armed ? 1 : 0;
}

void client::leave(const std::shared_ptr<channel>& watched) noexcept
{
    {
        const std::lock_guard guard(wait_mutex_);
        if (--watched->interested > 0)
            return;
        watched->unused_since = lease_clock::now();
    }
    try {
        on_strand([](client& self) { self.arm_tick(); });
    } catch (...) {
        // The next tick, whoever arms it, finds the channel unused.
    }
}

void client::wait(const std::shared_ptr<channel>& watched, const claim& who, std::uint64_t seen, completion<woken> done)
{
    {
        const std::lock_guard guard(wait_mutex_);
        if (watched->changes.load(std::memory_order_acquire) == seen) {
            watched->waiters.push_back({&who, std::move(done), lease_clock::now()});
            return;
        }
    }
    done(woken{});
}

void client::cancel_wait(const channel& watched, const claim& who) noexcept
{
    completion<woken> dropped;
    const std::lock_guard guard(wait_mutex_);
    auto& waiters = const_cast<channel&>(watched).waiters;
    const auto found = std::ranges::find(waiters, &who, &channel::waiter::who);
    if (found == waiters.end())
        return;
    dropped.swap(found->done);
    waiters.erase(found);
}

std::vector<completion<woken>> client::take_waiters(channel& changed)
{
    changed.changes.fetch_add(1, std::memory_order_acq_rel);
    std::vector<completion<woken>> taken;
    taken.reserve(changed.waiters.size());
    for (auto& each : changed.waiters)
        taken.push_back(std::move(each.done));
    changed.waiters.clear();
    return taken;
}

bool client::watched() const noexcept
{
    const std::lock_guard guard(wait_mutex_);
    return !channels_.empty();
}

void client::ensure_messages()
{
    auto& run = *runtime_;
    {
        const std::lock_guard guard(wait_mutex_);
        if (channels_.empty() || polls_)
            return;
    }
    if (run.messages) {
        subscribe_pending();
        return;
    }
    if (run.message_retry_pending)
        return;
    // The server is found, and its refusals are met, by the connection for commands.
    if (run.now != runtime::phase::open) {
        if (run.now == runtime::phase::idle)
            connect();
        return;
    }
    auto context = run.tls ? run.tls->share() : asio::ssl::context(asio::ssl::context::tls_client);
    run.messages =
        std::make_shared<link>(run.strand, config_, run.server, config_.where.tls, std::move(context), ++run.numbers);
    run.messages_ready = false;
    exchange::start(
        run.messages,
        [self = shared_from_this()](boost::redis::request& request) { push_greeting(request, self->config_.where); },
        [self = shared_from_this(), used = run.messages](delivery how, const reply_list& replies) {
            if (how != delivery::answered || self->runtime_->messages != used)
                return;
            if (replies[0].is_error()) {
                used->close();
                return;
            }
            self->runtime_->messages_ready = true;
            self->runtime_->message_failures = 0;
            used->send_at_once();
            self->subscribe_pending();
        });
    receive_messages();
    run.messages->run([self = shared_from_this(), used = run.messages](const error_code&) {
        used->close();
        if (self->runtime_->messages == used)
            self->message_link_ended();
    });
}

void client::subscribe_pending()
{
    auto& run = *runtime_;
    if (!run.messages_ready)
        return;
    for (;;) {
        std::vector<std::shared_ptr<channel>> asked;
        {
            const std::lock_guard guard(wait_mutex_);
            for (const auto& [name, each] : channels_) {
                if (each->now != channel::state::idle)
                    continue;
                each->now = channel::state::subscribing;
                asked.push_back(each);
                if (asked.size() == most_channels_per_request)
                    break;
            }
        }
        if (asked.empty())
            return;
        // A refused SUBSCRIBE is an error where no reply is expected; the PING behind it takes that up.
        exchange::start(
            run.messages,
            [&asked](boost::redis::request& request) {
                std::vector<std::string_view> names;
                for (const auto& each : asked)
                    names.push_back(each->name);
                request.subscribe(names);
                request.push("PING");
            },
            [self = shared_from_this(), used = run.messages, asked](delivery how, const reply_list& replies) {
                if (how == delivery::answered && self->runtime_->messages == used)
                    self->subscribed(asked, replies[0]);
            });
    }
}

void client::subscribed(const std::vector<std::shared_ptr<channel>>& asked, const reply& answer)
{
    if (answer.is_error()) {
        poll_instead(answer.text);
        return;
    }
    std::vector<completion<woken>> ended;
    {
        const std::lock_guard guard(wait_mutex_);
        for (const auto& each : asked) {
            each->now = channel::state::armed;
            std::ranges::move(take_waiters(*each), std::back_inserter(ended));
        }
    }
    for (auto& each : ended)
        each(woken{});
}

void client::receive_messages()
{
    auto& run = *runtime_;
    run.messages->receive([self = shared_from_this(), used = run.messages](const error_code& code) {
        std::vector<completion<woken>> ended;
        {
            const std::lock_guard guard(self->wait_mutex_);
            for (const auto& name : used->messages()) {
                if (const auto found = self->channels_.find(name); found != self->channels_.end())
                    std::ranges::move(take_waiters(*found->second), std::back_inserter(ended));
            }
        }
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->runtime_->messages == used)
            self->receive_messages();
        for (auto& each : ended)
            each(woken{});
    });
}

void client::message_link_ended()
{
    auto& run = *runtime_;
    asio::post(run.strand, [old = std::exchange(run.messages, nullptr)] {});
    run.messages_ready = false;
    bool wanted = false;
    {
        const std::lock_guard guard(wait_mutex_);
        for (const auto& [name, each] : channels_)
            each->now = channel::state::idle;
        wanted = !channels_.empty() && !polls_;
    }
    if (!wanted) {
        arm_tick();
        return;
    }
    run.message_retry_pending = true;
    run.message_retry.expires_after(backoff(run.message_failures++));
    run.message_retry.async_wait([self = shared_from_this()](const error_code& code) {
        self->runtime_->message_retry_pending = false;
        if (!code)
            self->ensure_messages();
    });
}

void client::poll_instead(std::string why)
{
    auto& run = *runtime_;
    warn_once("messages of releases cannot be received, so waiters poll (" + why.substr(0, 100) + ")");
    std::vector<completion<woken>> ended;
    {
        const std::lock_guard guard(wait_mutex_);
        polls_ = true;
        for (const auto& [name, each] : channels_)
            std::ranges::move(take_waiters(*each), std::back_inserter(ended));
    }
    if (run.messages)
        run.messages->close();
    arm_tick();
    for (auto& each : ended)
        each(woken{});
}

} // namespace colock::redis::detail
