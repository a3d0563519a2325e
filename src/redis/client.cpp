// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/pipeline.hpp"
#include "redis/connection/session.hpp"
#include "redis/pubsub/subscriptions.hpp"
#include "remote/adapter/default_clock_lead.hpp"
#include "util/strand.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

struct client::parts final : runtime
{
    parts(asio::any_io_executor new_strand, client& owner, std::weak_ptr<contact> new_reports,
        std::shared_ptr<remote::connection_events> all_events)
        : runtime(std::move(new_strand), new_reports), reports(std::move(new_reports)),
          connection_events(std::move(all_events)), factory(strand, owner.config_, owner.before_first_),
          commands(
              strand, owner, owner.config_, factory, reporter, connection_events, owner.anchor_, owner.replicas_seen_),
          sender(strand, owner, owner.config_, commands, owner.queue_, owner.anchor_),
          messages(strand, owner, owner.config_, factory, reporter, commands, owner.sources())
    {
        requests = &commands;
        events = &messages;
    }

    const std::weak_ptr<contact> reports;
    const std::shared_ptr<remote::connection_events> connection_events;
    connection_factory factory;
    session commands;
    pipeline sender;
    subscriptions messages;
};

client::client(detail::settings config, std::uint64_t number)
    : operation_client(std::move(config), {.started_per_handler = batch_size::max_in_flight * batch_size::max},
          {.can_start = [this](const remote::operation&) { return can_start(); },
              .send = [this] { active_parts().sender.send(); }}),
      before_first_(number * remote::lost_requests::numbers_per_server),
      // Sentinels and clusters promote replicas.
      replicas_seen_(!config_.location.master.empty() || config_.cluster())
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings config, std::weak_ptr<contact> reports)
{
    auto result = std::make_shared<client>(std::move(config), 0);
    result->start(std::make_unique<parts>(colock::detail::new_strand(executor), *result, std::move(reports),
        std::make_shared<remote::connection_events>()));
    join_context(executor, result);
    return result;
}

std::shared_ptr<client> client::make_for_node(endpoint node, std::uint64_t number)
{
    const auto& own = active_parts();
    auto result = std::make_shared<client>(config_.for_node(std::move(node)), number);
    result->anchor_.share_highest(anchor_);
    result->routes_ = routes_;
    result->start(std::make_unique<parts>(own.strand, *result, own.reports, own.connection_events));
    join_context(own.strand, result);
    return result;
}

bool client::can_start()
{
    const auto& own = active_parts();
    const bool can_start = own.sender.can_start();
    if (own.commands.plan().open())
        is_reported_ = false;
    else if (!can_start)
        note_blocked();
    return can_start;
}

void client::sweep()
{
    if (is_blocked())
        note_blocked();
}

void client::note_blocked()
{
    if (const auto routes = routes_.lock())
        routes->note_blocked();
}

bool client::is_blocked() const noexcept
{
    return runtime_if_open() && !is_connected() && demand().needed;
}

bool client::is_connected() const noexcept
{
    const auto* const own = static_cast<const parts*>(runtime_if_open());
    return own && own->commands.plan().takes_requests();
}

client::parts& client::active_parts() const noexcept
{
    return static_cast<parts&>(*runtime_if_open());
}

std::chrono::milliseconds client::max_clock_lead(std::chrono::milliseconds ttl) const noexcept
{
    if (config_.max_clock_lead)
        return *config_.max_clock_lead;
    return replicas_seen_.load(std::memory_order_relaxed) ? remote::default_clock_lead(ttl)
                                                          : std::chrono::milliseconds(0);
}

void client::wake_waiters(const std::function<bool(std::string_view)>& is_woken)
{
    remote::wake_all(sources().wake_if(is_woken));
}

void client::report_unreachable()
{
    const auto& own = active_parts();
    const auto& problem = own.commands.problem();
    if (!problem || !own.connection_events->is_any_open() || std::exchange(is_reported_, true))
        return;
    if (const auto to = own.reports.lock())
        to->report_unreachable(problem->cause, to_text(node()), problem->detail);
}

void client::add_to_batch(operation& operation)
{
    active_parts().sender.add(operation);
}

const remote::lost_requests& client::lost() const noexcept
{
    return active_parts().commands.lost();
}

bool client::has_sharded_channels() const noexcept
{
    return active_parts().commands.has_sharded_channels();
}

// Callbacks from the parts of the client.

client::usage client::current_usage() const noexcept
{
    auto now = client_base::current_usage();
    now.has_in_flight = now.has_in_flight || active_parts().sender.has_in_flight();
    now.needed = now.needed || now.has_in_flight;
    return now;
}

} // namespace colock::inline v0::redis::detail
