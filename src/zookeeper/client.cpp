// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/client.hpp"

#include "zookeeper/recipe/watches.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Between two turns while locks are held, and nothing else is going on.
constexpr lease_clock::duration calm_pace = 1s;
/// The driver tells all requests of a connection in one call that this has ended: two microseconds each.
constexpr std::size_t max_in_flight = 1024;

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)), watched(strand, owner, owner.sources(), owner.config_.layout),
          active_sessions(strand, owner, owner.config_, told, watched)
    {
        requests = &active_sessions;
    }

    watches watched;
    sessions active_sessions;
};

client::client(settings checked)
    : config_(std::move(checked)), queue_(*this, config_.deadlines(), max_in_flight,
                                       {.can_start = [this](const remote::operation&) { return can_start(); },
                                           .send = [this] { run().active_sessions.send(); }})
{
}

client::~client()
{
    stop();
}

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, settings checked, std::weak_ptr<remote::client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked));
    made->start(std::make_unique<parts>(executor, *made, std::move(events)));
    join_context(executor, made);
    return made;
}

client::parts& client::run() const noexcept
{
    return static_cast<parts&>(*running());
}

// For operations, and what one part tells the others.

sessions& client::active_sessions() noexcept
{
    return run().active_sessions;
}

bool client::can_start()
{
    if (!run().active_sessions.ask())
        return false;
    run().active_sessions.begin_asking();
    return true;
}

client::usage client::current_usage() const noexcept
{
    const auto& all = run();
    auto now = queue_.current_usage();
    if (!now.needed && sources().empty() && all.closing.empty())
        now.pace = calm_pace;
    now.needed = now.needed || all.active_sessions.in_use();
    now.others_open = all.active_sessions.closing();
    return now;
}

void client::opened()
{
    queue_.flush();
    watch_some();
}

void client::watch_some()
{
    auto* const by = run().active_sessions.ask();
    // Others have their turn in between.
    if (by && run().watched.ask_some(*by, run().active_sessions.number()))
        on_strand(*this, [](client& self) { self.watch_some(); });
}

void client::listen()
{
    run().active_sessions.on(sessions::event::wanted);
    watch_some();
}

void client::sweep(lease_clock::duration stood_still)
{
    queue_.end_overdue(stood_still);
    run().watched.forget_unused();
    watch_some();
}

// The end.

void client::give_up_all()
{
    queue_.give_up_all();
    run().active_sessions.give_up();
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    run().active_sessions.forked();
    queue_.forked();
    on_strand(*this, [waits = sources().drop_all()](client&) mutable { remote::wake_all(std::move(waits)); });
}

} // namespace colock::zookeeper::detail
