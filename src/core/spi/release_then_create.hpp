// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include "util/no_memory.hpp"

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include <memory>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

/// Returns the guarantee that a release of a granted claim must give: `settled` for a claim in doubt, because an
/// earlier request may still arrive.
[[nodiscard]] inline release_guarantee needed_guarantee(const claim& held) noexcept
{
    return held.in_doubt() ? release_guarantee::settled : release_guarantee::released;
}

/// The default hand-over: a release, then a create, each with its own outcome.
class release_then_create final : public boost::intrusive_ref_counter<release_then_create>
{
public:
    using ptr = boost::intrusive_ptr<release_then_create>;

    release_then_create(std::shared_ptr<adapter> backend, claim_ptr next, completion<hand_over_outcome> done)
        : backend_(std::move(backend)), next_(std::move(next)), done_(std::move(done))
    {
    }

    void start(claim_ptr held)
    {
        const auto guarantee = needed_guarantee(*held);
        backend_->start_release(std::move(held), guarantee,
            completion<release_outcome>::bind<&release_then_create::on_released>(ptr(this)));
    }

private:
    void on_released(release_outcome&& outcome)
    {
        released_ = std::move(outcome);
        try {
            backend_->start_create(
                std::move(next_), completion<create_outcome>::bind<&release_then_create::on_created>(ptr(this)));
        } catch (const std::bad_alloc&) {
            // `done_` is empty if the backend answered before it threw.
            if (done_)
                on_created(create_outcome::failed(no_memory_));
        }
    }
    void on_created(create_outcome&& outcome) { done_({std::move(released_), std::move(outcome)}); }

    const std::shared_ptr<adapter> backend_;
    /// Made before memory may run out.
    const failure_ptr no_memory_ = no_memory();
    claim_ptr next_;
    completion<hand_over_outcome> done_;
    release_outcome released_;
};

} // namespace colock::inline v0::detail
