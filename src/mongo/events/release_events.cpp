// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/events/release_events.hpp"

#include "mongo/commands/commands.hpp"
#include "mongo/commands/query.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

using remote::most_per_turn;
using remote::wake_all;

namespace {

using namespace std::chrono_literals;

/// The stream is kept a little after its last use: the next waiter is often on its way.
constexpr lease_clock::duration stream_linger = 1s;
/// Whoever waits longer looks again, and so marks anew that somebody waits: releases are told for a minute after that.
constexpr lease_clock::duration longest_wait = 10s;
/// For which a server waits for the next change.
constexpr auto longest_answer = 1000ms;

std::int64_t cursor_of(const answer& got)
{
    bson_iter_t top;
    bson_iter_t id;
    if (!bson_iter_init(&top, got.reply.get()) || !bson_iter_find_descendant(&top, "cursor.id", &id))
        return 0;
    return bson_iter_as_int64(&id);
}

} // namespace

release_events::release_events(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& told, primary& requests, remote::wait_sources& sources, std::atomic<waiting_by>& by)
    : listening_loop(
          strand, owner, requests, sources, config.idle_timeout == 0ms ? lease_clock::duration::zero() : stream_linger),
      config_(config), reports_(told), requests_(requests), by_(by)
{
    sources_.poll(true);
}

void release_events::note_decision()
{
    const auto now = polls() ? waiting_by::poll : plan().ready() ? waiting_by::change_stream : waiting_by::nothing;
    by_.store(now, std::memory_order_relaxed);
}

// The connection.

void release_events::follow_requests()
{
    if (!requests_.has_change_streams()) {
        on(event::requests_here);
        on(event::wanted);
        return;
    }
    // It was opened on the server before.
    on(plan().ready() ? event::requests_elsewhere : event::requests_here);
}

void release_events::connect()
{
    sources_.begin_round();
    server_ = requests_.where().name();
    lanes_ = std::make_shared<connection_pool>(strand_, requests_.where(), 1);
    ask(commands::get().watch.filled({{"c", std::string_view(config_.collection)}}), &release_events::opened);
}

void release_events::ask(document what, question_handler then)
{
    lanes_->ask(std::make_shared<question>(config_.database, std::move(what),
                    [self = owner_.keep(*this), used = std::weak_ptr(lanes_), then](const answer& got) {
                        if (self->lanes_ && self->lanes_ == used.lock())
                            ((*self).*then)(got);
                    }),
        // One that is not answered was lost with its connection, which nobody may have told.
        lease_clock::now() + longest_answer + config_.operation_timeout);
}

void release_events::opened(const answer& got)
{
    const auto meaning = judge(got);
    if (meaning == verdict::done) {
        cursor_ = cursor_of(got);
        on(event::greeted_here);
        tell_of_changes(got);
        ask_for_more();
        return;
    }
    if (meaning == verdict::later || meaning == verdict::unknown) {
        disconnect();
        return;
    }
    // A failed login says nothing about change streams.
    if (is_temporary(got) || got.code == authentication_failed) {
        on(event::refused);
        return;
    }
    warn_of_polling(got);
    on(event::denied);
}

void release_events::warn_of_polling(const answer& refusal)
{
    const auto code = "(code " + std::to_string(refusal.code) + ')';
    if (is_denial(refusal))
        reports_.warn_once("this user may not have change streams " + code +
                           ", so waiters poll; grant find and changeStream on the collection");
    else if (requests_.has_change_streams())
        reports_.warn_once("the server has no change streams " + code + ", so waiters poll every poll_interval");
}

void release_events::ask_for_more()
{
    if (!lanes_)
        return;
    static const command_template more(R"({"getMore":"?i","collection":"?c","maxTimeMS":"?m"})");
    ask(more.filled({{"i", cursor_}, {"c", std::string_view(config_.collection)}, {"m", longest_answer.count()}}),
        &release_events::received);
}

void release_events::received(const answer& got)
{
    if (judge(got) == verdict::done)
        cursor_ = cursor_of(got);
    if (judge(got) != verdict::done || cursor_ == 0) {
        disconnect();
        return;
    }
    // Only now: a server may open change streams and refuse every getMore.
    on(event::confirmed);
    // The stream goes on first: what is woken may take its time.
    ask_for_more();
    tell_of_changes(got);
}

void release_events::tell_of_changes(const answer& got)
{
    std::vector<std::string> keys;
    for_each_document(got.reply, [&](const bson_iter_t& change) {
        bson_iter_t inside;
        if (bson_iter_recurse(&change, &inside) && bson_iter_find(&inside, "documentKey"))
            keys.push_back(key_of(inside));
    });
    if (!keys.empty())
        wake_all(sources_.changed(keys));
}

void release_events::disconnect()
{
    kill_cursor();
    if (const auto old = std::exchange(lanes_, nullptr))
        asio::post(strand_, [old] { old->close_all(); });
    on(event::ended);
    owner_.arm_turn();
    owner_.finish_close();
}

/// The connection of the change stream cannot carry the command, because a getMore is still in progress on it.
void release_events::kill_cursor()
{
    const auto id = std::exchange(cursor_, 0);
    if (id == 0 || requests_.where().name() != server_)
        return;
    static const command_template kill(R"({"killCursors":"?c","cursors":["?i"]})");
    requests_.ask(std::make_shared<question>(
                      config_.database, kill.filled({{"c", std::string_view(config_.collection)}, {"i", id}}), nullptr),
        lease_clock::now() + config_.operation_timeout);
}

void release_events::forked()
{
    lanes_.reset();
    cursor_ = 0;
    on(event::forked);
}

// The keys.

/// The stream tells of all of them; whoever has begun to wait before it did has to look again.
void release_events::listen()
{
    const auto idle = sources_.take_idle(most_per_turn);
    wake_all(sources_.arm(idle));
    if (idle.size() < most_per_turn)
        return;
    asio::post(strand_, [self = owner_.keep(*this)] {
        if (self->plan().ready())
            self->listen();
    });
}

std::optional<lease_clock::duration> release_events::max_wait() const
{
    return polls() ? lease_clock::duration(config_.poll_interval) : longest_wait;
}

} // namespace colock::mongo::detail
