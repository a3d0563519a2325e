// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/strand.hpp"
#include "redis/client.hpp"
#include "redis/failures.hpp"
#include "redis/link.hpp"
#include "remote/connection_plan.hpp"
#include "remote/listening_plan.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace colock::redis::detail {

/// Some commands of the client's own.
class client::exchange final : public operation
{
public:
    using writer = std::function<void(boost::redis::request&)>;
    using reader = std::function<void(delivery, const reply_list&)>;

    exchange(writer writes, reader reads) : writes_(std::move(writes)), reads_(std::move(reads)) {}

    void write(boost::redis::request& request) override { writes_(request); }
    void end(operation_ptr, delivery how, failure_ptr) override { reads_(how, replies); }

    /// Sends it on `on`, outside the queue.
    static void start(const std::shared_ptr<link>& on, writer writes, reader reads)
    {
        auto sent = std::make_unique<batch>();
        sent->add(std::make_unique<exchange>(std::move(writes), std::move(reads)));
        sent->complete({}, {});
        auto& request = sent->request();
        auto* const reading = sent.get();
        on->exec(request, adapter_for(*reading, *on),
            [on, sent = std::move(sent)](const error_code&, std::size_t) { sent->finish(nullptr); });
    }

    static boost::redis::any_adapter adapter_for(batch& reading, link& on)
    {
        using event = boost::redis::any_adapter::parse_event;
        return boost::redis::any_adapter(boost::redis::any_adapter::impl_t(
            [&reading, &heard = on.heard()](event what, const boost::redis::resp3::node_view& node, error_code&) {
                ++heard;
                if (what == event::node)
                    reading.on_node(node);
                else if (what == event::done)
                    reading.on_reply();
            }));
    }

private:
    writer writes_;
    reader reads_;
};

struct client::runtime
{
    struct failed_batch
    {
        batch_ptr operations;
        failure_ptr why;
    };

    runtime(const asio::any_io_executor& executor, const settings& config)
        : strand(colock::detail::new_strand(executor)), ticker(strand), retry(strand), message_retry(strand),
          life(saturating_cast(config.idle_timeout), told), tls(config.tls)
    {
    }

    asio::any_io_executor strand;
    asio::steady_timer ticker;
    asio::steady_timer retry;
    asio::steady_timer message_retry;
    lease_clock::time_point tick_at = lease_clock::time_point::max();
    lease_clock::duration tick_delay{};
    bool used_since_tick = false;

    remote::connection_news told;
    /// Decides about the connection for commands.
    remote::connection_plan life;
    /// Decides about the one for messages.
    remote::listening_plan listening;
    remote::tls_files tls;
    endpoint server;
    std::shared_ptr<link> commands;
    /// Of the last connection that was made.
    remote::connection_number numbers = 0;
    std::int64_t client_id = 0;
    std::string run_id;
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
    /// What was wrong with the first Sentinel that did not name the master.
    failure_ptr sentinel_problem;
    remote::lost_requests connections;
    std::set<std::string> warned;

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

/// The value of a line of INFO; empty: there is none.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

/// Speaks RESP3, by name and password.
void push_greeting(boost::redis::request& request, const location& who);

} // namespace colock::redis::detail
