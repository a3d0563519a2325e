// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/pipeline.hpp"
#include "redis/connection/session.hpp"
#include "redis/pubsub/subscriptions.hpp"
#include "remote/adapter/default_clock_lead.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<contact> reports)
        : runtime(executor, std::move(reports)), factory(strand, owner.config_),
          commands(strand, owner, owner.config_, factory, reporter, owner.anchor_, owner.replicas_seen_),
          sender(strand, owner, owner.config_, commands, owner.queue_, owner.anchor_),
          messages(strand, owner, owner.config_, factory, reporter, commands, owner.sources())
    {
        requests = &commands;
        events = &messages;
    }

    connection_factory factory;
    session commands;
    pipeline sender;
    subscriptions messages;
};

client::client(detail::settings config)
    : operation_client(std::move(config), {.started_per_handler = pipeline::max_batches_in_flight * batch_size::max},
          {.can_start = [this](const remote::operation&) { return active_parts().sender.can_start(); },
              .send = [this] { active_parts().sender.send(); }}),
      // Sentinels promote replicas, so a server that is found through them has replicas.
      replicas_seen_(!config_.location.master.empty())
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings config, std::weak_ptr<contact> reports)
{
    auto result = std::make_shared<client>(std::move(config));
    result->start(std::make_unique<parts>(executor, *result, std::move(reports)));
    join_context(executor, result);
    return result;
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

void client::add_to_batch(operation& operation)
{
    active_parts().sender.add(operation);
}

const remote::lost_requests& client::lost() const noexcept
{
    return active_parts().commands.lost();
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
