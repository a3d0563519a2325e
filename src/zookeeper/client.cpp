// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/client.hpp"

#include "util/strand.hpp"
#include "zookeeper/recipe/watches.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Interval of the client's timer while locks are held, but no operation runs and no claim waits.
constexpr lease_clock::duration calm_pace = 1s;
/// Maximum number of requests in flight. The driver completes all requests of a lost connection in one call, which
/// takes about two microseconds for each and blocks the event loop meanwhile.
constexpr std::size_t max_in_flight = 1024;

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<contact> reports)
        : runtime(colock::detail::new_strand(executor), std::move(reports)),
          all_watches(strand, owner, owner.sources(), owner.config().layout),
          sessions(strand, owner, owner.config(), reporter, all_watches)
    {
        requests = &sessions;
    }

    watches all_watches;
    session_manager sessions;
};

client::client(settings config)
    : operation_client(std::move(config), {.in_flight = max_in_flight},
          {.can_start = [this](const remote::operation&) { return can_start(); },
              .send = [this] { all_parts().sessions.send(); }})
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, settings config, std::weak_ptr<contact> reports)
{
    auto result = std::make_shared<client>(std::move(config));
    result->start(std::make_unique<parts>(executor, *result, std::move(reports)));
    join_context(executor, result);
    return result;
}

client::parts& client::all_parts() const noexcept
{
    return static_cast<parts&>(*runtime_if_open());
}

// Functions for operations, and callbacks between the parts.

session_manager& client::sessions() noexcept
{
    return all_parts().sessions;
}

bool client::can_start()
{
    if (!all_parts().sessions.get_requests())
        return false;
    all_parts().sessions.announce_requests();
    return true;
}

client::usage client::current_usage() const noexcept
{
    const auto& all = all_parts();
    auto result = client_base::current_usage();
    if (!result.needed && sources().empty() && all.closing.empty())
        result.timer_interval = calm_pace;
    result.needed = result.needed || all.sessions.in_use();
    result.others_open = all.sessions.is_closing();
    return result;
}

void client::set_watches()
{
    auto* const sender = all_parts().sessions.get_requests();
    // The remaining watches are set by a posted handler, so that other handlers can run in between.
    if (sender && all_parts().all_watches.set_some(*sender, all_parts().sessions.number()))
        on_strand(*this, [](client& self) { self.set_watches(); });
}

void client::listen()
{
    all_parts().sessions.handle(session_manager::event::needed);
    set_watches();
}

void client::sweep()
{
    all_parts().all_watches.forget_unused();
    all_parts().sessions.forget_old_lists();
    set_watches();
}

} // namespace colock::inline v0::zookeeper::detail
