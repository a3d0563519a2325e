// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/lock_view.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/operations/claim_state.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace colock::mongo::detail {

namespace {

/// When nothing is seen that keeps it, and it was not granted.
constexpr auto look_again_in = std::chrono::milliseconds(5);
/// For so long a waiter relies on what is known of the server's clock.
constexpr lease_clock::duration most_trusted = std::chrono::seconds(5);
/// Between a raced upsert and the next.
constexpr int most_misses = 5;
/// One that names its fence is refused when it comes later than that, so that the document of a later grant was not
/// forgotten yet, and has a higher one.
constexpr auto most_late = std::chrono::milliseconds(settings::least_purge_after) / 2;

class create_operation final : public batchable_operation
{
public:
    create_operation(client& owner, claim_ptr claim, completion<create_outcome> done)
        : batchable_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          owner_data_(to_document(claim_->owner())), looked_before_(find_state(*claim_) != nullptr),
          is_first_(!is_shared() && !looked_before_)
    {
    }

    [[nodiscard]] bool joins() const noexcept override { return is_shared() || is_first_; }
    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    [[nodiscard]] std::string_view key() const noexcept override { return claim_->key(); }
    [[nodiscard]] bool gives_back() const noexcept override { return false; }
    /// Of an exclusive one the statement tells whether it was granted, and it knows with which fence.
    [[nodiscard]] bool wants_look() const override { return is_shared(); }
    /// A single attempt, that is to know who is in its way.
    [[nodiscard]] bool is_better_alone() const override { return is_shared() || !claim_->queues(); }

    void begin() override
    {
        late_ = too_late();
        fill([&](command_template::values with) { ask(which().filled(with), &create_operation::told); });
    }
    void write(bson_t& to) override
    {
        fence_ = talks().clock().at(lease_clock::now());
        late_ = latest();
        fill([&](command_template::values with) { which_joined().append_to(to, with); });
    }

    /// The token stands in no document: it was never sent, or each of its requests was answered.
    [[nodiscard]] std::string statement_kind() const override
    {
        const auto* const state = find_state(*claim_);
        if (!is_shared() || (state && (state->granted || state->in_doubt_until != 0)))
            return {};
        return (claim_->queues() ? "wait " : "try ") + std::to_string(claim_->max_holders());
    }
    void write_for(std::span<batchable_operation* const> all, bson_t& to) override
    {
        // Without a limit; below what overflows where it is added to.
        constexpr std::int64_t any = std::int64_t{1} << 40;
        const auto& every = commands::get();
        auto late = std::numeric_limits<std::int64_t>::max();
        auto longest = std::chrono::milliseconds::zero();
        bool has_ttl = true;
        document tokens;
        document holders;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const index_name name(i);
            auto& one = static_cast<create_operation&>(*all[i]);
            const auto token = one.claim_->token().hex();
            const auto ttl = one.claim_->ttl();
            one.number_ = owner_->next_request();
            late = std::min(late, one.latest());
            has_ttl = has_ttl && ttl.count() != 0;
            longest = std::max(longest, ttl);
            bson_append_utf8(tokens.get(), name.text(), name.size(), token.data(), static_cast<int>(token.size()));
            const auto holder = one.by_ttl(every.several_holder)
                                    .filled({{"t", std::string_view(token)}, {"x", ttl_value(ttl)}, {"e", one.number_},
                                        {"o", &one.owner_data_}, {"n", std::min(most_holders(), any)},
                                        {"i", static_cast<std::int64_t>(i)}});
            bson_append_document(holders.get(), name.text(), name.size(), holder.get());
        }
        for (auto* const each : all)
            static_cast<create_operation&>(*each).late_ = late;
        const auto& both = claim_->queues() ? every.join_several_queues : every.join_several_once;
        (has_ttl ? both.with_ttl : both.without)
            .append_to(to, {{"k", bytes{claim_->key()}}, {"a", array{&tokens}}, {"h", array{&holders}},
                               {"q", static_cast<std::int64_t>(all.size())}, {"n", std::min(most_holders(), any)},
                               {"x", has_ttl ? longest.count() : ttl_value({})}, {"l", late},
                               {"v", std::string_view(owner_->name())}});
    }

    [[nodiscard]] bool is_shared() const noexcept { return claim_->mode() == lock_mode::shared; }
    [[nodiscard]] const command_template& by_ttl(const commands::create& both) const
    {
        return claim_->ttl().count() == 0 ? both.without : both.with_ttl;
    }
    [[nodiscard]] const command_template& which() const
    {
        const auto& all = commands::get();
        if (is_shared())
            return by_ttl(claim_->queues() ? all.shared_queues : all.shared_once);
        if (is_first_)
            return by_ttl(claim_->queues() ? all.first_exclusive_queues : all.first_exclusive_once);
        return by_ttl(claim_->queues() ? all.exclusive_queues : all.exclusive_once);
    }
    [[nodiscard]] const command_template& which_joined() const
    {
        const auto& all = commands::get();
        if (is_shared())
            return by_ttl(claim_->queues() ? all.join_shared_queues : all.join_shared_once);
        return by_ttl(all.join_first_exclusive);
    }

    template <class Use>
    void fill(Use use)
    {
        number_ = owner_->next_request();
        const auto token = claim_->token().hex();
        use(command_template::values{{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token)},
            {"x", ttl_value(claim_->ttl())}, {"l", late_}, {"e", number_}, {"f", fence_}, {"o", &owner_data_},
            {"n", most_holders()}, {"m", write_patience()}, {"v", std::string_view(owner_->name())}});
    }

    /// A statement is refused when it comes later than that.
    [[nodiscard]] std::int64_t latest() const noexcept
    {
        return std::min(too_late(), talks().clock().at(lease_clock::now()) + most_late.count());
    }

    [[nodiscard]] std::int64_t most_holders() const noexcept
    {
        constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
        return claim_->max_holders() == 0 ? any : static_cast<std::int64_t>(claim_->max_holders());
    }

    void told(const answer& got) { seen(lock_view::of_answer(got.reply)); }
    void hear_unseen(const answer& failed) override
    {
        talks().heard(failed);
        end_failed(delivery::unanswered,
            make_failure(errc::outcome_unknown, "what has become of this could not be read", failed.cause));
    }
    void hear_refused() override
    {
        is_first_ = false;
        begin();
    }
    void hear_done() override { granted(static_cast<std::uint64_t>(fence_)); }
    void hear_seen(const lock_view& now) override { seen(now); }

    void seen(const lock_view& view)
    {
        if (!view.exists()) {
            if (++misses_ < most_misses)
                begin();
            else
                outrun();
            return;
        }
        const auto token = claim_->token().hex();
        const auto* const held = view.find(token);
        if (held && held->request == number_) {
            granted(static_cast<std::uint64_t>(held->fence));
            return;
        }
        if (view.is_foreign()) {
            end_failed(delivery::answered, foreign_document());
            return;
        }
        if (view.is_out_of_fences()) {
            end_failed(delivery::answered, out_of_fences());
            return;
        }
        const auto now = talks().clock().at(lease_clock::now());
        const auto free_at = view.free_at(*claim_, now);
        if (std::exchange(is_first_, false) && (free_at == 0 || !view.shared().empty())) {
            begin();
            return;
        }
        // It was too late, or the clock that says so is not what it was. If the server's was set forward, each request
        // is too late, and the lease in the way may be over: then this clock has to be read again, now and then.
        const bool may_be_ahead = looked_before_ && talks().clock().age(lease_clock::now()) > most_trusted;
        if ((held || free_at == 0 || may_be_ahead) && begin_with_new_clock())
            return;
        busy(view, free_at > now ? std::chrono::milliseconds(free_at - now) : look_again_in);
    }

    void granted(std::uint64_t fence)
    {
        if (auto* const state = find_state(*claim_)) {
            state->granted = true;
            state->intends = false;
            state->source.reset();
        }
        end();
        done_(create_outcome::granted(fence));
    }

    void busy(const lock_view& view, std::chrono::milliseconds retry_after)
    {
        auto& state = state_of(*claim_);
        state.granted = view.find(claim_->token().hex()) != nullptr;
        state.intends = view.writer() == claim_->token().hex();
        std::string holder(view.owner());
        // One without a ttl does not expire.
        if (retry_after > std::chrono::hours(24 * 3650))
            retry_after = std::chrono::milliseconds::zero();
        end();
        done_(create_outcome::busy(retry_after, std::move(holder)));
    }

    void outrun() override
    {
        state_of(*claim_).granted = false;
        end();
        done_(create_outcome::busy(look_again_in));
    }

    void failed(delivery how, failure_ptr why) override
    {
        if (how == delivery::unanswered) {
            auto& state = state_of(*claim_);
            state.doubt(late_);
            state.intends = state.intends || (claim_->queues() && claim_->mode() == lock_mode::exclusive);
        }
        done_(create_outcome::failed(std::move(why)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const document owner_data_;
    /// It waits, and asks again.
    const bool looked_before_;
    /// No document knows its token.
    bool is_first_;
    std::int64_t number_ = 0;
    /// As a statement: the server's clock as we know it, refused where that is no more than the last.
    std::int64_t fence_ = 0;
    std::int64_t late_ = 0;
    int misses_ = 0;
};

} // namespace

operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::mongo::detail
