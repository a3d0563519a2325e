// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/strand.hpp"
#include "redis/client.hpp"
#include "redis/introduction.hpp"
#include "redis/links.hpp"
#include "redis/reports.hpp"
#include "redis/sentinel_search.hpp"
#include "remote/connection_plan.hpp"
#include "remote/listening_plan.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace colock::redis::detail {

struct client::runtime
{
    struct failed_batch
    {
        batch_ptr operations;
        failure_ptr why;
    };

    runtime(const asio::any_io_executor& executor, const settings& config, std::weak_ptr<client_events> events)
        : strand(colock::detail::new_strand(executor)), ticker(strand), retry(strand), message_retry(strand),
          life(saturating_cast(config.idle_timeout), news), made(strand, config), told(std::move(events))
    {
    }

    asio::any_io_executor strand;
    asio::steady_timer ticker;
    asio::steady_timer retry;
    asio::steady_timer message_retry;
    lease_clock::time_point tick_at = lease_clock::time_point::max();
    lease_clock::duration tick_delay{};
    bool used_since_tick = false;

    remote::connection_news news;
    /// Decides about the connection for commands.
    remote::connection_plan life;
    /// Decides about the one for messages.
    remote::listening_plan listening;
    links made;
    reports told;
    endpoint server;
    std::shared_ptr<sentinel_search> search;
    std::shared_ptr<introduction> greeter;
    std::shared_ptr<link> commands;
    /// What the server knows that connection by.
    remote::lost_requests::identity known_by;
    std::vector<batch*> in_flight;
    std::size_t operations_in_flight = 0;
    /// Answered, and not told yet.
    std::deque<batch_ptr> answers;
    /// The next of them is told by a handler that is posted already.
    bool telling = false;
    /// Not sent, and not told yet.
    std::deque<failed_batch> failed;
    /// Of waits that a fork has ended.
    std::deque<completion<woken>> wakes;
    /// The next part of both is told by a handler that is posted already.
    bool giving_up = false;
    /// The look at what is overdue goes on in a handler that is posted already.
    bool looking = false;
    /// Why there is no connection.
    failure_ptr problem;
    remote::lost_requests lost;

    std::shared_ptr<link> messages;
    /// Requests of theirs that are unanswered.
    unsigned subscriptions_in_flight = 0;
    /// The process of the server that the connection for messages was made to; empty if that is not known.
    std::string messages_run_id;
    /// The next part of what is due for channels is posted already.
    bool sweeping = false;

    /// Told once all is closed.
    std::vector<completion<closed>> closing;
};

template <class Function, class Initiate>
void client::on_strand(Function function, Initiate initiate)
{
    asio::any_io_executor strand;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        strand = runtime_->strand;
    }
    initiate(strand, [self = shared_from_this(), function = std::move(function)]() mutable { function(*self); });
}

} // namespace colock::redis::detail
