// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "sabotage.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prove {

using namespace colock;

namespace {

/// Passes all operations to the backend below, except for one deviation.
class sabotaged_adapter : public adapter
{
public:
    explicit sabotaged_adapter(std::shared_ptr<adapter> below) : adapter(below->executor()), below_(std::move(below)) {}

    adapter_traits traits() const noexcept override { return below_->traits(); }
    std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override
    {
        return below_->max_clock_lead(ttl);
    }
    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        below_->start_create(std::move(claim), std::move(done));
    }
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        below_->start_release(std::move(claim), guarantee, std::move(done));
    }
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override
    {
        below_->start_extend(std::move(claim), ttl, std::move(done));
    }
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        below_->start_is_valid(std::move(claim), std::move(done));
    }
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done) override
    {
        below_->start_wait(std::move(claim), until, std::move(done));
    }
    void cancel_wait(claim& claim) noexcept override { below_->cancel_wait(claim); }
    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        below_->start_listing(std::move(request), std::move(done));
    }
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override
    {
        below_->start_create_all(std::move(claims), std::move(done));
    }
    void start_export(claim_ptr held, completion<export_outcome> done) override
    {
        below_->start_export(std::move(held), std::move(done));
    }
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        below_->start_adopt(std::move(ticket), std::move(claim), std::move(done));
    }
    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override
    {
        below_->start_close(deadline, std::move(done));
    }
    void cancel_close() noexcept override { below_->cancel_close(); }
    failure_ptr connection_failure() const override { return below_->connection_failure(); }

protected:
    [[nodiscard]] adapter& below() const noexcept { return *below_; }
    /// Returns a completion that replaces the answer "busy" by a grant, with a fence that is greater than all before.
    [[nodiscard]] completion<create_outcome> grant_if_busy(completion<create_outcome> done)
    {
        return [self = shared_from_this(), this, done = std::move(done)](create_outcome outcome) mutable {
            if (outcome.status == create_status::busy)
                outcome = create_outcome::granted(highest_fence_ + 1);
            highest_fence_ = std::max(highest_fence_, outcome.fence);
            done(std::move(outcome));
        };
    }

private:
    const std::shared_ptr<adapter> below_;
    std::uint64_t highest_fence_ = 0;
};

/// A release removes the lock of the key, whatever its token.
class blind_release final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override
    {
        listing_request request{.action = listing_action::break_key, .filter = {.key = claim->key()}};
        below().start_listing(std::move(request),
            [self = shared_from_this(), this, claim, guarantee, done = std::move(done)](
                list_outcome) mutable { below().start_release(std::move(claim), guarantee, std::move(done)); });
    }
};

/// A create grants the lock, even if another holder has it.
class always_granted final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        below().start_create(std::move(claim), grant_if_busy(std::move(done)));
    }
};

/// Every second grant of a key has the fence of the grant before.
class repeated_fence final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        auto& last = last_[claim->key()];
        below().start_create(std::move(claim),
            [self = shared_from_this(), &last, done = std::move(done)](create_outcome outcome) mutable {
                if (outcome.status == create_status::granted) {
                    if (last != 0)
                        outcome.fence = std::exchange(last, 0);
                    else
                        last = outcome.fence;
                }
                done(std::move(outcome));
            });
    }

private:
    std::map<std::string, std::uint64_t> last_;
};

/// A break removes the holders of the key a second time, a moment after its answer.
class late_break final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        if (request.action != listing_action::break_key) {
            below().start_listing(std::move(request), std::move(done));
            return;
        }
        auto timer = std::make_shared<lease_timer>(executor(), std::chrono::milliseconds(100));
        below().start_listing(request,
            [self = shared_from_this(), this, request, timer, done = std::move(done)](list_outcome outcome) mutable {
                timer->async_wait([self, this, request, timer](const error_code&) mutable {
                    below().start_listing(std::move(request), [](const list_outcome&) {});
                });
                done(std::move(outcome));
            });
    }
};

/// Holders whose lease ends within half a second are left out of lists and queries.
class early_expiry final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_listing(listing_request request, completion<list_outcome> done) override
    {
        const bool is_list = request.action == listing_action::list;
        below().start_listing(std::move(request), [is_list, done = std::move(done)](list_outcome outcome) mutable {
            if (is_list)
                std::erase_if(outcome.locks, [](const lock_status& each) {
                    return each.remaining && *each.remaining < std::chrono::milliseconds(500);
                });
            done(std::move(outcome));
        });
    }
};

/// Some creates are carried out, but reported as not carried out.
class unreported_create final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        below().start_create(std::move(claim),
            [self = shared_from_this(), this, done = std::move(done)](create_outcome outcome) mutable {
                if (outcome.status == create_status::granted && ++grants_ % 20 == 0)
                    outcome = create_outcome::failed(make_failure(errc::access_denied, "sabotage"));
                done(std::move(outcome));
            });
    }

private:
    std::uint64_t grants_ = 0;
};

/// An adoption is granted although another caller has used the ticket.
class reused_ticket final : public sabotaged_adapter
{
public:
    using sabotaged_adapter::sabotaged_adapter;

    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override
    {
        below().start_adopt(std::move(ticket), std::move(claim), grant_if_busy(std::move(done)));
    }
};

using maker = std::shared_ptr<adapter> (*)(std::shared_ptr<adapter>);

template <class Sabotage>
std::shared_ptr<adapter> make(std::shared_ptr<adapter> backend)
{
    return std::make_shared<Sabotage>(std::move(backend));
}

std::shared_ptr<adapter> unchanged(std::shared_ptr<adapter> backend)
{
    return backend;
}

constexpr std::array<std::pair<std::string_view, maker>, 10> known{{
    {"blind_release", make<blind_release>},
    {"always_granted", make<always_granted>},
    {"repeated_fence", make<repeated_fence>},
    {"late_break", make<late_break>},
    {"early_expiry", make<early_expiry>},
    {"unreported_create", make<unreported_create>},
    {"reused_ticket", make<reused_ticket>},
    // Done by the client.
    {"early_release", unchanged},
    // Done by the servers.
    {"unraised_fence", unchanged},
    {"first_sentinel", unchanged},
}};

maker find(std::string_view name)
{
    const auto* const found = std::ranges::find(known, name, &std::pair<std::string_view, maker>::first);
    return found == known.end() ? nullptr : found->second;
}

} // namespace

bool is_sabotage(std::string_view name)
{
    return find(name) != nullptr;
}

std::shared_ptr<adapter> sabotaged(std::shared_ptr<adapter> backend, std::string_view name)
{
    const auto make_sabotaged = find(name);
    return make_sabotaged ? make_sabotaged(std::move(backend)) : backend;
}

} // namespace prove
