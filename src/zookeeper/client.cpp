// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/client.hpp"

#include "zookeeper/watches.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Between two turns while locks are held, and nothing else is going on.
constexpr lease_clock::duration calm_pace = 1s;
/// The driver tells all requests of a connection in one call that this has ended: two microseconds each.
constexpr std::size_t most_cut_off = 1024;

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)), watched(strand, owner, owner.sources(), owner.config_.layout),
          talks(strand, owner, owner.config_, told, watched)
    {
    }

    watches watched;
    sessions talks;
};

client::client(settings checked) : errand_client(checked.deadlines()), config_(std::move(checked)) {}

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

sessions& client::talks() noexcept
{
    return run().talks;
}

void client::want()
{
    run().talks.on(sessions::event::wanted);
}

std::size_t client::most_under_way() const noexcept
{
    return most_cut_off;
}

bool client::takes_more() noexcept
{
    if (!run().talks.ask())
        return false;
    run().talks.begin_asking();
    return true;
}

void client::started_all()
{
    run().talks.send();
}

void client::all_ended()
{
    run().talks.on(sessions::event::told);
}

failure_ptr client::denial() noexcept
{
    const auto& talks = run().talks;
    return talks.is_denied() ? talks.problem() : nullptr;
}

void client::denial_told()
{
    run().talks.on(sessions::event::refused);
}

const failure_ptr& client::problem() const noexcept
{
    return run().talks.problem();
}

bool client::in_use() const noexcept
{
    return run().talks.in_use();
}

bool client::others_open() const noexcept
{
    return run().talks.closing();
}

remote::connection_plan& client::plan() noexcept
{
    return run().talks.plan();
}

lease_clock::duration client::pace() const noexcept
{
    return is_calm() && run().closing.empty() ? calm_pace : usual_pace();
}

void client::opened()
{
    flush();
    watch_some();
}

void client::watch_some()
{
    auto* const by = run().talks.ask();
    // Others have their turn in between.
    if (by && run().watched.ask_some(*by, run().talks.number()))
        on_strand(*this, [](client& self) { self.watch_some(); });
}

void client::listen()
{
    run().talks.on(sessions::event::wanted);
    watch_some();
}

void client::look_around(lease_clock::duration stood_still)
{
    end_overdue(stood_still);
    forget_unused();
    watch_some();
}

// The end.

void client::forget_unused()
{
    run().watched.forget_unused();
}

void client::close_unused()
{
    run().talks.on(sessions::event::turn);
}

void client::give_up_connection()
{
    run().talks.give_up();
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    run().talks.forked();
    end_inherited();
    on_strand(*this, [waits = sources().drop_all()](client&) mutable { remote::wake_all(std::move(waits)); });
}

} // namespace colock::zookeeper::detail
