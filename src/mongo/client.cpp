// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/client.hpp"

#include "mongo/commands/batch.hpp"
#include "mongo/events/release_events.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/operations/shared_read.hpp"

#include <colock/token.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

namespace {

/// While a lane is free.
constexpr auto longest_wait_for_company = std::chrono::milliseconds(2);

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<remote::client_events> events)
        : runtime(executor, std::move(events)),
          talks(strand, owner, owner.config_, told, [&owner] { owner.queue_.flush_soon(); }),
          releases(strand, owner, owner.config_, told, talks, owner.sources(), owner.waiting_), company(strand)
    {
        requests = &talks;
    }

    primary talks;
    release_events releases;

    /// Those that were started, and go out together.
    std::vector<boost::intrusive_ptr<batchable_operation>> together;
    std::size_t most_together = 1;
    std::vector<std::weak_ptr<batch>> travelling;
    /// The last that was begun; others may join it.
    std::weak_ptr<shared_read> last_read;
    /// Something waits for others to go with.
    lease_timer company;
    lease_clock::time_point held_since{};
    bool holds = false;
    bool company_due = false;
    bool impatient = false;
};

client::client(settings checked)
    : config_(std::move(checked)), queue_(*this, config_.deadlines(), remote::request_queue::unlimited,
                                       {.can_start = [this](const remote::operation& next) { return can_start(next); },
                                           .send = [this] { send_together(); }}),
      name_(token::generate().hex())
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

bool client::can_start(const remote::operation& next)
{
    auto& all = run();
    if (next.joins() && !all.together.empty())
        return true;
    // It needs no connection of its own.
    if (static_cast<const command_operation&>(next).shares_read() && open_read())
        return true;
    // They have their lane before others.
    send_together();
    if (!all.talks.has_room())
        return false;
    if (!next.joins() || all.impatient)
        return true;
    const auto operations = load();
    // Not those that nobody comes back from to join others, which may take long.
    if (all.travelling.size() >= worthwhile_commands(operations)) {
        wait_for_company();
        return false;
    }
    return true;
}

void client::join(batchable_operation& added)
{
    auto& all = run();
    if (all.together.empty())
        all.most_together = worthwhile_statements(load() + 1);
    all.together.emplace_back(&added);
    if (all.together.size() >= all.most_together)
        send_together();
}

std::shared_ptr<shared_read> client::open_read() const
{
    auto last = run().last_read.lock();
    return last && last->takes_more() ? last : nullptr;
}

void client::read(key_reader& added)
{
    auto with = added.reads_alone() ? nullptr : open_read();
    const bool is_first = !with;
    if (is_first) {
        with = std::make_shared<shared_read>(std::static_pointer_cast<client>(shared_from_this()));
        if (!added.reads_alone())
            run().last_read = with;
    }
    added.read_with(with);
    with->add(added);
    if (is_first)
        with->start();
}

void client::send_together()
{
    auto& all = run();
    if (all.together.empty())
        return;
    all.holds = false;
    auto members = std::exchange(all.together, {});
    if (members.size() == 1 && members.front()->is_better_alone()) {
        members.front()->go_alone();
        return;
    }
    const auto made = std::make_shared<batch>(config_, members, all.talks.no_change_code());
    for (const auto& each : members)
        each->travel_with(made);
    all.travelling.push_back(made);
    all.talks.ask(made);
}

/// Operations that wait, or are under way.
std::size_t client::load() noexcept
{
    auto& all = run();
    std::size_t joined = 0;
    std::erase_if(all.travelling, [&](const std::weak_ptr<batch>& each) {
        const auto under_way = each.lock();
        if (!under_way || under_way->is_over())
            return true;
        joined += under_way->size();
        return false;
    });
    const auto commands = all.talks.under_way();
    return queue_.waiting() + all.together.size() + joined + commands - std::min(commands, all.travelling.size());
}

void client::wait_for_company()
{
    auto& all = run();
    if (!std::exchange(all.holds, true))
        all.held_since = lease_clock::now();
    if (std::exchange(all.company_due, true))
        return;
    all.company.expires_at(all.held_since + longest_wait_for_company);
    all.company.async_wait([self = keep(*this)](const error_code& code) {
        if (!code)
            self->company_waited_for();
    });
}

void client::company_waited_for()
{
    auto& all = run();
    all.company_due = false;
    if (!all.holds)
        return;
    if (lease_clock::now() < all.held_since + longest_wait_for_company) {
        wait_for_company();
        return;
    }
    all.impatient = true;
    queue_.flush();
    all.impatient = false;
}

client::usage client::current_usage() const noexcept
{
    const auto& all = run();
    auto now = queue_.current_usage();
    now.others_open = all.releases.connected();
    if (all.releases.polls())
        now.pace = std::min<lease_clock::duration>(now.pace, config_.poll_interval);
    return now;
}

void client::opened()
{
    queue_.flush();
    run().releases.follow_requests();
    run().releases.on(release_events::event::wanted);
}

void client::listen()
{
    run().releases.on(release_events::event::wanted);
}

void client::sweep(lease_clock::duration stood_still)
{
    queue_.end_overdue(stood_still);
    run().releases.sweep();
}

// The end.

void client::give_up_all()
{
    queue_.give_up_all();
    run().talks.give_up_all();
}

void client::context_forked() noexcept
{
    if (!running())
        return;
    run().talks.forked();
    run().releases.forked();
    queue_.forked();
    on_strand(*this, [waits = sources().drop_all()](client&) mutable { remote::wake_all(std::move(waits)); });
}

} // namespace colock::mongo::detail
