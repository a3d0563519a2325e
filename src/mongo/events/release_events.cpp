// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/events/release_events.hpp"

#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

using remote::max_per_handler;
using remote::wake_all;

namespace {

using namespace std::chrono_literals;

/// The stream is kept open for a while after its last use, because another waiter often follows soon.
constexpr lease_clock::duration stream_idle_time = 1s;
/// A waiter checks the lock again after this time, and so renews its mark in the document. Releases are reported for a
/// minute after the mark.
constexpr lease_clock::duration max_event_wait = 10s;
/// Time for which a server waits for the next change.
constexpr auto get_more_timeout = 1000ms;
/// Minimum time between two requests for changes if there was none. A server that does not wait would be asked without
/// a pause.
constexpr lease_clock::duration min_idle_interval = 100ms;

std::int64_t cursor_of(const answer& result)
{
    bson_iter_t top;
    bson_iter_t id;
    if (!bson_iter_init(&top, result.reply.get()) || !bson_iter_find_descendant(&top, "cursor.id", &id))
        return 0;
    return bson_iter_as_int64(&id);
}

std::vector<std::string> changed_keys(const answer& result)
{
    std::vector<std::string> keys;
    for_each_document(result.reply, [&](const bson_iter_t& change) {
        bson_iter_t inside;
        if (bson_iter_recurse(&change, &inside) && bson_iter_find(&inside, "documentKey"))
            keys.push_back(key_of(inside));
    });
    return keys;
}

} // namespace

release_events::release_events(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& reporter, primary& requests, remote::wait_sources& sources,
    std::atomic<waiting_by>& waiting)
    : listening_loop(strand, owner, requests, sources,
          config.idle_timeout == 0ms ? lease_clock::duration::zero() : stream_idle_time),
      pause_(strand), config_(config), reports_(reporter), requests_(requests), waiting_(waiting)
{
    sources_.set_polling(true);
}

void release_events::note_decision()
{
    const auto mode = plan().polls()   ? waiting_by::poll
                      : plan().ready() ? waiting_by::change_stream
                                       : waiting_by::nothing;
    waiting_.store(mode, std::memory_order_relaxed);
}

// The connection.

void release_events::follow_requests()
{
    if (!requests_.has_change_streams()) {
        handle(event::requests_here);
        handle(event::needed);
        return;
    }
    // The change stream was opened on the previous server.
    handle(plan().ready() ? event::requests_elsewhere : event::requests_here);
}

void release_events::connect()
{
    sources_.begin_round();
    server_ = requests_.server().name();
    pool_ = std::make_shared<connection_pool>(strand_, requests_.server(), 1);
    ask(commands::get().watch.filled({{"c", std::string_view(config_.collection)}}), &release_events::opened);
}

void release_events::ask(document request, answer_handler then)
{
    pool_->ask(std::make_shared<callback_command>(config_.database, std::move(request),
                   [self = owner_.keep(*this), used = std::weak_ptr(pool_), then](const answer& result) {
                       if (self->pool_ && self->pool_ == used.lock())
                           ((*self).*then)(result);
                   }),
        // A command without an answer was lost with its connection, possibly without notice.
        lease_clock::now() + get_more_timeout + config_.operation_timeout);
}

void release_events::opened(const answer& result)
{
    if (judge(result) == verdict::done) {
        cursor_ = cursor_of(result);
        handle(event::connected_here);
        if (const auto keys = changed_keys(result); !keys.empty())
            wake_all(sources_.wake_keys(keys));
        ask_for_more();
        return;
    }
    if (is_interruption(result)) {
        disconnect();
        return;
    }
    // A failed login says nothing about change streams.
    if (is_temporary(result) || result.code == authentication_failed) {
        handle(event::refused);
        return;
    }
    warn_of_polling(result);
    handle(event::denied);
}

void release_events::warn_of_polling(const answer& refusal)
{
    const auto code = "(code " + std::to_string(refusal.code) + ')';
    if (is_denial(refusal))
        reports_.warn("this user may not have change streams " + code +
                      ", so waiters poll; grant find and changeStream on the collection");
    else if (requests_.has_change_streams())
        reports_.warn("the server has no change streams " + code + ", so waiters poll every poll_interval");
}

void release_events::ask_for_more()
{
    if (!pool_)
        return;
    requested_at_ = lease_clock::now();
    static const command_template more(R"({"getMore":"?i","collection":"?c","maxTimeMS":"?m"})");
    ask(more.filled({{"i", cursor_}, {"c", std::string_view(config_.collection)}, {"m", get_more_timeout.count()}}),
        &release_events::received);
}

void release_events::received(const answer& result)
{
    if (judge(result) == verdict::done)
        cursor_ = cursor_of(result);
    if (judge(result) != verdict::done || cursor_ == 0) {
        disconnect();
        return;
    }
    // The stream is confirmed only here, because a server may open change streams and refuse every getMore.
    handle(event::confirmed);
    const auto keys = changed_keys(result);
    // The stream continues first, because the woken handlers may take long.
    if (keys.empty() && lease_clock::now() - requested_at_ < min_idle_interval)
        pause();
    else
        ask_for_more();
    if (!keys.empty())
        wake_all(sources_.wake_keys(keys));
}

void release_events::pause()
{
    pause_.expires_at(requested_at_ + min_idle_interval);
    pause_.async_wait([self = owner_.keep(*this), used = std::weak_ptr(pool_)](const error_code& error) {
        if (!error && self->pool_ && self->pool_ == used.lock())
            self->ask_for_more();
    });
}

void release_events::disconnect()
{
    pause_.cancel();
    kill_cursor();
    if (const auto old = std::exchange(pool_, nullptr))
        asio::post(strand_, [old] { old->close_all(); });
    handle(event::closed);
    owner_.arm_timer();
    owner_.finish_close();
}

/// The connection of the change stream cannot carry the command, because a getMore is still in progress on it.
void release_events::kill_cursor()
{
    const auto id = std::exchange(cursor_, 0);
    if (id == 0 || requests_.server().name() != server_)
        return;
    static const command_template kill(R"({"killCursors":"?c","cursors":["?i"]})");
    requests_.ask(std::make_shared<callback_command>(
                      config_.database, kill.filled({{"c", std::string_view(config_.collection)}, {"i", id}}), nullptr),
        lease_clock::now() + config_.operation_timeout);
}

// The keys.

/// The stream reports all keys. Waiters that began to wait before it was open have to check the lock again.
void release_events::listen()
{
    const auto idle = sources_.take_unrequested(max_per_handler);
    wake_all(sources_.activate(idle));
    if (idle.size() < max_per_handler)
        return;
    asio::post(strand_, [self = owner_.keep(*this)] {
        if (self->plan().ready())
            self->listen();
    });
}

std::optional<lease_clock::duration> release_events::longest_wait() const
{
    return plan().polls() ? lease_clock::duration(config_.poll_interval) : max_event_wait;
}

} // namespace colock::inline v0::mongo::detail
