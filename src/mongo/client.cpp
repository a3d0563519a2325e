// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/client.hpp"

#include "mongo/events/release_events.hpp"
#include "mongo/operations/batch.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/operations/shared_read.hpp"
#include "util/strand.hpp"

#include <colock/token.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

namespace {

/// Maximum time for which an operation waits for others to share a batch, although a connection is free.
constexpr auto max_batch_wait = std::chrono::milliseconds(2);

} // namespace

struct client::parts final : runtime
{
    parts(const asio::any_io_executor& executor, client& owner, std::weak_ptr<contact> reports)
        : runtime(colock::detail::new_strand(executor), std::move(reports)),
          current_primary(strand, owner, owner.config_, reporter, [&owner] { owner.queue_.flush_soon(); }),
          releases(strand, owner, owner.config_, reporter, current_primary, owner.sources(), owner.waiting_),
          batch_timer(strand)
    {
        requests = &current_primary;
        events = &releases;
    }

    primary current_primary;
    release_events releases;

    /// Operations that were started and are sent in the next batch.
    std::vector<boost::intrusive_ptr<batchable_operation>> batch_members;
    std::size_t max_batch_size = 1;
    std::vector<std::weak_ptr<batch>> batches_in_flight;
    /// The last read that was started. Other operations may join it.
    std::weak_ptr<shared_read> last_read;
    /// Ends the wait of operations for others to share a batch.
    lease_timer batch_timer;
    lease_clock::time_point collecting_since{};
    bool is_collecting = false;
    bool is_timer_pending = false;
    bool is_wait_over = false;
};

client::client(settings config)
    : operation_client(std::move(config), token::generate().hex(),
          {.can_start = [this](const remote::operation& next) { return can_start(next); },
              .send = [this] { send_batch(); }})
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

client::parts& client::run() const noexcept
{
    return static_cast<parts&>(*runtime_if_open());
}

primary& client::get_primary() noexcept
{
    return run().current_primary;
}

// Coordination of the parts.

bool client::can_start(const remote::operation& next)
{
    auto& all = run();
    if (next.is_batchable() && !all.batch_members.empty())
        return true;
    // A reader that joins a shared read needs no connection of its own.
    if (static_cast<const command_operation&>(next).shares_read() && open_read())
        return true;
    // The collected operations get a connection before other operations.
    send_batch();
    if (!all.current_primary.has_capacity())
        return false;
    if (!next.is_batchable() || all.is_wait_over)
        return true;
    const auto operations = operation_count();
    // Only batches in flight are a reason to wait: other commands may take long, and their operations do not return to
    // join a batch.
    if (all.batches_in_flight.size() >= batch_count(operations)) {
        wait_for_batch();
        return false;
    }
    return true;
}

void client::add_to_batch(batchable_operation& operation)
{
    auto& all = run();
    if (all.batch_members.empty())
        all.max_batch_size = batch_size(operation_count() + 1);
    all.batch_members.emplace_back(&operation);
    if (all.batch_members.size() >= all.max_batch_size)
        send_batch();
}

std::shared_ptr<shared_read> client::open_read() const
{
    auto last = run().last_read.lock();
    return last && last->accepts_readers() ? last : nullptr;
}

void client::read(key_reader& reader)
{
    auto read = reader.reads_alone() ? nullptr : open_read();
    const bool is_first = !read;
    if (is_first) {
        read = std::make_shared<shared_read>(std::static_pointer_cast<client>(shared_from_this()));
        if (!reader.reads_alone())
            run().last_read = read;
    }
    reader.set_read(read);
    read->add(reader);
    if (is_first)
        read->start();
}

void client::send_batch()
{
    auto& all = run();
    if (all.batch_members.empty())
        return;
    all.is_collecting = false;
    auto members = std::exchange(all.batch_members, {});
    if (members.size() == 1 && members.front()->prefers_own_command()) {
        members.front()->send_alone();
        return;
    }
    const auto next_batch = std::make_shared<batch>(config_, members, all.current_primary.no_change_code());
    for (const auto& each : members)
        each->set_batch(next_batch);
    all.batches_in_flight.push_back(next_batch);
    all.current_primary.ask(next_batch);
}

/// Number of operations that wait or are in progress.
std::size_t client::operation_count() noexcept
{
    auto& all = run();
    std::size_t joined = 0;
    std::erase_if(all.batches_in_flight, [&](const std::weak_ptr<batch>& each) {
        const auto in_flight = each.lock();
        if (!in_flight || in_flight->is_over())
            return true;
        joined += in_flight->size();
        return false;
    });
    const auto commands = all.current_primary.in_flight();
    return queue_.waiting_count() + all.batch_members.size() + joined + commands -
           std::min(commands, all.batches_in_flight.size());
}

void client::wait_for_batch()
{
    auto& all = run();
    if (!std::exchange(all.is_collecting, true))
        all.collecting_since = lease_clock::now();
    if (std::exchange(all.is_timer_pending, true))
        return;
    all.batch_timer.expires_at(all.collecting_since + max_batch_wait);
    all.batch_timer.async_wait([self = keep(*this)](const error_code& error) {
        if (!error)
            self->batch_wait_ended();
    });
}

void client::batch_wait_ended()
{
    auto& all = run();
    all.is_timer_pending = false;
    if (!all.is_collecting)
        return;
    if (lease_clock::now() < all.collecting_since + max_batch_wait) {
        wait_for_batch();
        return;
    }
    all.is_wait_over = true;
    queue_.flush();
    all.is_wait_over = false;
}

} // namespace colock::inline v0::mongo::detail
