// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/client.hpp"

#include "mongo/release_events.hpp"

#include <colock/token.hpp>

#include <algorithm>
#include <utility>

namespace colock::mongo::detail {

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)), talks(strand, owner, owner.config_, told, [&owner] { owner.flush(); }),
          releases(strand, owner, owner.config_, told, talks, owner.sources(), owner.waiting_)
    {
    }

    primary talks;
    release_events releases;
};

client::client(settings checked)
    : errand_client(checked.deadlines()), config_(std::move(checked)), name_(token::generate().hex())
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

primary& client::talks() noexcept
{
    return run().talks;
}

// What one part tells the others.

void client::want()
{
    run().talks.on(primary::event::wanted);
}

bool client::takes_more() noexcept
{
    return run().talks.has_room();
}

void client::all_ended()
{
    run().talks.on(primary::event::told);
}

void client::denial_told()
{
    run().talks.on(primary::event::refused);
}

const failure_ptr& client::problem() const noexcept
{
    return run().talks.problem();
}

bool client::others_open() const noexcept
{
    return run().releases.connected();
}

remote::connection_plan& client::plan() noexcept
{
    return run().talks.plan();
}

lease_clock::duration client::pace() const noexcept
{
    return run().releases.polls() ? std::min<lease_clock::duration>(usual_pace(), config_.poll_interval) : usual_pace();
}

void client::opened()
{
    flush();
    run().releases.follow_requests();
    run().releases.on(release_events::event::wanted);
}

void client::listen()
{
    run().releases.on(release_events::event::wanted);
}

void client::look_around(lease_clock::duration stood_still)
{
    end_overdue(stood_still);
    run().releases.sweep();
}

// The end.

void client::give_up_connection()
{
    run().talks.give_up_all();
}

void client::forget_unused()
{
    run().releases.sweep();
}

void client::close_unused()
{
    run().releases.on(release_events::event::turn);
    run().talks.on(primary::event::turn);
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    run().talks.forked();
    run().releases.forked();
    // What is told to others is told from the strand, as ever.
    on_strand(*this, [](client& self) {
        self.end_inherited();
        for (auto& each : self.sources().drop_all())
            each(woken{});
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::mongo::detail
