// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/errand_client.hpp"

#include <boost/asio/dispatch.hpp>

#include <utility>

namespace colock::remote {

namespace {

/// Operations that are started in one go.
constexpr int most_started = 64;
/// Who takes turns on a contended key is alone now and then.
constexpr unsigned enough_alone = 8;

} // namespace

void errand_client::submit(operation_ptr added)
{
    added->deadline = deadlines_.of(lease_clock::now());
    if (!errands_.add(std::move(added)))
        return;
    if (!at_once_.exchange(false, std::memory_order_relaxed)) {
        flush_soon();
        return;
    }
    on_strand(
        *this,
        [](errand_client& self) {
            // What else there is to do is none of its caller's business.
            if (self.plan().open())
                self.flush();
            else
                self.flush_soon();
        },
        [](const auto& strand, auto handler) { asio::dispatch(strand, std::move(handler)); });
}

void errand_client::flush_soon()
{
    on_strand(*this, [](errand_client& self) { self.flush(); });
}

void errand_client::start_held_back()
{
    if (std::exchange(is_full_, false))
        flush_soon();
}

void errand_client::again(operation& which)
{
    errands_.put_back(which);
    if (!errands_.under_way())
        all_ended();
    flush_soon();
}

void errand_client::ended(operation& which)
{
    errands_.ended(which);
    start_held_back();
    if (errands_.under_way())
        return;
    // Not what one that ends in its start leads to: it would be started inside that.
    const bool expects_company = errands_.alone_in_a_row() < enough_alone || !errands_.empty();
    at_once_.store(!flushing_ && !expects_company, std::memory_order_relaxed);
    all_ended();
    if (const auto why = denial())
        refuse(why);
    arm_turn();
}

void errand_client::flush()
{
    if (!errands_.empty()) {
        plan().reopen();
        want();
    }
    if (const auto why = denial())
        refuse(why);
    const bool outer = std::exchange(flushing_, true);
    int room = most_started;
    for (; room > 0; --room) {
        is_full_ = errands_.count_under_way() >= most_under_way();
        if (is_full_ || !takes_more())
            break;
        const auto next = errands_.take();
        if (!next)
            break;
        next->start();
    }
    started_all();
    flushing_ = outer;
    // Others have their turn in between.
    if (room == 0)
        flush_soon();
    arm_turn();
}

/// Unless the next part is told by a handler that is posted already.
void errand_client::end_some()
{
    if (ending_)
        return;
    // Set before anybody is told: whoever is may give up more.
    ending_ = true;
    ending_ = errands_.end_some(lease_clock::now(), problem());
    start_held_back();
    if (!ending_)
        return;
    on_strand(*this, [](errand_client& self) {
        self.ending_ = false;
        self.end_some();
        self.finish_close();
        self.arm_turn();
    });
}

void errand_client::end_overdue(lease_clock::duration stood_still)
{
    errands_.postpone(stood_still);
    end_some();
    if (!errands_.under_way())
        all_ended();
}

connection_plan::demand errand_client::demand() const noexcept
{
    const bool under_way = errands_.under_way();
    return {.needed = under_way || !errands_.empty() || !sources().empty() || in_use(), .under_way = under_way};
}

connection_plan::surroundings errand_client::surroundings() const noexcept
{
    return {.others_open = others_open(), .untold = errands_.under_way() || !errands_.empty()};
}

bool errand_client::is_calm() const noexcept
{
    return !errands_.under_way() && errands_.empty() && sources().empty();
}

void errand_client::refuse(const failure_ptr& why)
{
    errands_.give_up_waiting(why);
    end_some();
    // What was asked before has an answer of its own.
    if (!errands_.under_way())
        denial_told();
    arm_turn();
}

void errand_client::give_up_all()
{
    const auto& trouble = problem();
    const auto cause = trouble ? trouble->cause : error_code();
    errands_.give_up_waiting(
        make_failure(errc::unavailable, "the adapter was closed before this could be sent", cause));
    errands_.give_up_running(make_failure(errc::outcome_unknown, "the adapter was closed before this was answered"));
    end_some();
    give_up_connection();
}

void errand_client::end_inherited()
{
    const auto why = make_failure(errc::forked);
    errands_.give_up_running(why);
    errands_.give_up_waiting(why);
    on_strand(*this, [](errand_client& self) {
        self.end_some();
        self.arm_turn();
        self.finish_close();
    });
}

} // namespace colock::remote
