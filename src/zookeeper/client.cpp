// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/client.hpp"

#include "zookeeper/watches.hpp"

#include <chrono>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Between two turns while locks are held, and nothing else is going on.
constexpr lease_clock::duration calm_pace = 1s;
/// Operations that are started in one go.
constexpr int most_started = 128;

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)), watched(owner, owner.sources()),
          talks(strand, owner, owner.config_, told, watched)
    {
    }

    watches watched;
    sessions talks;
};

client::client(settings checked) : config_(std::move(checked)) {}

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

void client::submit(operation_ptr added)
{
    added->deadline = config_.deadlines().of(lease_clock::now());
    if (errands_.add(std::move(added)))
        on_strand(*this, [](client& self) { self.flush(); });
}

// For operations, and what one part tells the others.

sessions& client::talks() noexcept
{
    return run().talks;
}

void client::again(operation& which)
{
    errands_.put_back(which);
    on_strand(*this, [](client& self) { self.flush(); });
}

void client::ended(operation& which)
{
    errands_.ended(which);
    if (errands_.under_way())
        return;
    auto& talks = run().talks;
    talks.on(sessions::event::told);
    if (talks.is_denied())
        refuse(talks.problem());
    arm_turn();
}

void client::flush()
{
    auto& talks = run().talks;
    if (!errands_.empty()) {
        talks.plan().reopen();
        talks.on(sessions::event::wanted);
    }
    if (talks.is_denied())
        refuse(talks.problem());
    int room = most_started;
    for (; room > 0 && talks.ask(); --room) {
        const auto next = errands_.take();
        if (!next)
            break;
        talks.note_use();
        next->start();
    }
    // Others have their turn in between.
    if (room == 0)
        on_strand(*this, [](client& self) { self.flush(); });
    arm_turn();
}

/// Unless the next part is told by a handler that is posted already.
void client::end_some()
{
    if (ending_)
        return;
    // Set before anybody is told: whoever is may give up more.
    ending_ = true;
    ending_ = errands_.end_some(lease_clock::now(), run().talks.problem());
    if (!ending_)
        return;
    on_strand(*this, [](client& self) {
        self.ending_ = false;
        self.end_some();
        self.finish_close();
        self.arm_turn();
    });
}

remote::connection_plan::demand client::demand() const noexcept
{
    const bool under_way = errands_.under_way();
    return {
        .needed = under_way || !errands_.empty() || !sources().empty() || run().talks.in_use(), .under_way = under_way};
}

remote::connection_plan::surroundings client::surroundings() const noexcept
{
    return {.others_open = run().talks.closing(), .untold = errands_.under_way() || !errands_.empty()};
}

remote::connection_plan& client::plan() noexcept
{
    return run().talks.plan();
}

lease_clock::duration client::pace() const noexcept
{
    const bool is_calm = !errands_.under_way() && errands_.empty() && sources().empty() && run().closing.empty();
    return is_calm ? calm_pace : config_.deadlines().pace();
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
    if (by && run().watched.ask_some(*by))
        on_strand(*this, [](client& self) { self.watch_some(); });
}

void client::refuse(const failure_ptr& why)
{
    errands_.give_up_waiting(why);
    end_some();
    // What was asked before has an answer of its own.
    if (!errands_.under_way())
        run().talks.refused();
    arm_turn();
}

void client::listen()
{
    run().talks.on(sessions::event::wanted);
    watch_some();
}

void client::look_around(lease_clock::duration stood_still)
{
    auto& talks = run().talks;
    errands_.postpone(stood_still);
    end_some();
    forget_unused();
    watch_some();
    if (!errands_.under_way())
        talks.on(sessions::event::told);
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

void client::give_up_all()
{
    auto& talks = run().talks;
    const auto& trouble = talks.problem();
    const auto cause = trouble ? trouble->cause : error_code();
    errands_.give_up_waiting(
        make_failure(errc::unavailable, "the adapter was closed before this could be sent", cause));
    errands_.give_up_running(make_failure(errc::outcome_unknown, "the adapter was closed before this was answered"));
    end_some();
    if (talks.plan().open())
        talks.on(sessions::event::given_up);
}

void client::drop_all() noexcept
{
    errands_.drop_all();
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    run().talks.forked();
    // What is told to others is told from the strand, as ever.
    on_strand(*this, [](client& self) {
        const auto why = make_failure(errc::forked);
        self.errands_.give_up_running(why);
        self.errands_.give_up_waiting(why);
        self.end_some();
        wake_all(self.sources().drop_all());
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::zookeeper::detail
