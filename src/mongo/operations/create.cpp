// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/operations/batchable_operation.hpp"
#include "mongo/operations/claim_state.hpp"
#include "mongo/templates/lock_view.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Delay of the next attempt if the lock was not granted, and nothing in the document prevents the grant.
constexpr auto retry_delay = std::chrono::milliseconds(5);
/// Maximum age of the estimate of the server's clock for a claim that waits.
constexpr lease_clock::duration max_clock_age = std::chrono::seconds(5);
/// Maximum number of attempts of an upsert that races with other clients.
constexpr int max_upsert_attempts = 5;
/// Maximum delay of a batched statement, which contains its fence. The server refuses the statement if it arrives
/// later. Until then, the document of a later grant is not purged, and its higher fence prevents the grant of the lower
/// one.
constexpr auto max_statement_delay = std::chrono::milliseconds(settings::min_purge_after) / 2;

class create_operation final : public batchable_operation
{
public:
    create_operation(operation_client& owner, claim_ptr claim, completion<create_outcome> done)
        : batchable_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          owner_data_(to_document(claim_->owner())), was_sent_before_(find_state(*claim_) != nullptr),
          is_first_(!is_shared() && !was_sent_before_)
    {
    }

    [[nodiscard]] bool is_batchable() const noexcept override { return is_shared() || is_first_; }
    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    [[nodiscard]] std::string_view key() const noexcept override { return claim_->key(); }
    [[nodiscard]] bool is_release() const noexcept override { return false; }
    /// For an exclusive lock, the statement shows whether the lock was granted, and the fence is known.
    [[nodiscard]] bool needs_document() const override { return is_shared(); }
    /// A single attempt needs a command of its own, which returns the current holder.
    [[nodiscard]] bool prefers_own_command() const override { return is_shared() || !claim_->keeps_place(); }

    void begin() override
    {
        request_expiry_ = request_expiry();
        fill([&](command_template::values arguments) {
            ask(get_command().filled(arguments), &create_operation::on_reply);
        });
    }
    void write(bson_t& to) override
    {
        fence_ = get_primary().clock().latest(lease_clock::now());
        request_expiry_ = statement_expiry();
        fill([&](command_template::values arguments) { get_statement().append_to(to, arguments); });
    }

    /// A claim can share a statement if its token is in no document: it was never sent, or each of its requests was
    /// answered.
    [[nodiscard]] std::string statement_kind() const override
    {
        const auto* const state = find_state(*claim_);
        if (!is_shared() || (state && (state->granted || state->in_doubt_until != 0)))
            return {};
        return (claim_->keeps_place() ? "wait " : "try ") + std::to_string(claim_->max_holders());
    }
    void write_for(std::span<batchable_operation* const> all, bson_t& to) override
    {
        // Maximum number of holders of a lock without a limit. It is small enough for additions without overflow.
        constexpr std::int64_t no_limit = std::int64_t{1} << 40;
        const auto& command_set = commands::get();
        auto expiry = std::numeric_limits<std::int64_t>::max();
        auto longest_ttl = std::chrono::milliseconds::zero();
        bool has_ttl = true;
        document tokens;
        document holders;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const index_name name(i);
            auto& one = static_cast<create_operation&>(*all[i]);
            const auto token = one.claim_->token().hex();
            const auto ttl = one.claim_->ttl();
            one.number_ = owner_->next_request();
            expiry = std::min(expiry, one.statement_expiry());
            has_ttl = has_ttl && ttl.count() != 0;
            longest_ttl = std::max(longest_ttl, ttl);
            bson_append_utf8(tokens.get(), name.text(), name.size(), token.data(), static_cast<int>(token.size()));
            const auto holder = one.by_ttl(command_set.several_holder)
                                    .filled({{"t", std::string_view(token)}, {"x", ttl_value(ttl)}, {"e", one.number_},
                                        {"o", &one.owner_data_}, {"n", std::min(max_holders(), no_limit)},
                                        {"i", static_cast<std::int64_t>(i)}});
            bson_append_document(holders.get(), name.text(), name.size(), holder.get());
        }
        for (auto* const each : all)
            static_cast<create_operation&>(*each).request_expiry_ = expiry;
        const auto& forms =
            claim_->keeps_place() ? command_set.batched_several_queues : command_set.batched_several_once;
        (has_ttl ? forms.with_ttl : forms.without_ttl)
            .append_to(to, {{"k", bytes{claim_->key()}}, {"a", array{&tokens}}, {"h", array{&holders}},
                               {"q", static_cast<std::int64_t>(all.size())}, {"n", std::min(max_holders(), no_limit)},
                               {"x", has_ttl ? longest_ttl.count() : ttl_value({})}, {"l", expiry},
                               {"v", std::string_view(owner_->name())}});
    }

    [[nodiscard]] bool is_shared() const noexcept { return claim_->mode() == lock_mode::shared; }
    [[nodiscard]] const command_template& by_ttl(const commands::ttl_forms& forms) const
    {
        return claim_->ttl().count() == 0 ? forms.without_ttl : forms.with_ttl;
    }
    [[nodiscard]] const command_template& get_command() const
    {
        const auto& all = commands::get();
        if (is_shared())
            return by_ttl(claim_->keeps_place() ? all.shared_queues : all.shared_once);
        if (is_first_)
            return by_ttl(claim_->keeps_place() ? all.first_exclusive_queues : all.first_exclusive_once);
        return by_ttl(claim_->keeps_place() ? all.exclusive_queues : all.exclusive_once);
    }
    [[nodiscard]] const command_template& get_statement() const
    {
        const auto& all = commands::get();
        if (is_shared())
            return by_ttl(claim_->keeps_place() ? all.batched_shared_queues : all.batched_shared_once);
        return by_ttl(all.batched_first_exclusive);
    }

    template <class Use>
    void fill(Use use)
    {
        number_ = owner_->next_request();
        const auto token = claim_->token().hex();
        use(command_template::values{{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(token)},
            {"x", ttl_value(claim_->ttl())}, {"l", request_expiry_}, {"e", number_}, {"f", fence_}, {"o", &owner_data_},
            {"n", max_holders()}, {"m", write_concern_timeout()}, {"v", std::string_view(owner_->name())}});
    }

    /// A statement that arrives later than this is refused.
    [[nodiscard]] std::int64_t statement_expiry() const noexcept
    {
        return std::min(
            request_expiry(), get_primary().clock().latest(lease_clock::now()) + max_statement_delay.count());
    }

    [[nodiscard]] std::int64_t max_holders() const noexcept
    {
        constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
        return claim_->max_holders() == 0 ? no_limit : static_cast<std::int64_t>(claim_->max_holders());
    }

    void on_reply(const answer& result) { evaluate(lock_view::of_answer(result.reply)); }
    void on_document_unknown(const answer& result) override
    {
        get_primary().note_failure(result);
        end_failed(delivery::unanswered,
            make_failure(errc::outcome_unknown, "the result of the request could not be read", result.cause));
    }
    void on_refused() override
    {
        is_first_ = false;
        begin();
    }
    void on_done() override { granted(static_cast<std::uint64_t>(fence_)); }
    void on_document(const lock_view& now) override { evaluate(now); }

    void evaluate(const lock_view& view)
    {
        if (!view.exists()) {
            if (++upsert_attempts_ < max_upsert_attempts)
                begin();
            else
                on_conflicts_exhausted();
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
        const auto now = get_primary().clock().latest(lease_clock::now());
        const auto free_at = view.free_at(*claim_, now);
        if (std::exchange(is_first_, false) && (free_at == 0 || !view.shared().empty())) {
            begin();
            return;
        }
        // The request was too late, or the estimate of the server's clock is wrong. If the server's clock was set
        // forward, each request is too late, and the lease of the current holder may have expired. So a claim that
        // waits reads the clock again from time to time.
        const bool may_be_ahead = was_sent_before_ && get_primary().clock().age(lease_clock::now()) > max_clock_age;
        if ((held || free_at == 0 || may_be_ahead) && begin_with_new_clock())
            return;
        busy(view, free_at > now ? std::chrono::milliseconds(free_at - now) : retry_delay);
    }

    void granted(std::uint64_t fence)
    {
        if (auto* const state = find_state(*claim_)) {
            state->granted = true;
            state->is_waiting_writer = false;
            state->source.reset();
        }
        end();
        done_(create_outcome::granted(fence));
    }

    void busy(const lock_view& view, std::chrono::milliseconds retry_after)
    {
        auto& state = state_of(*claim_);
        state.granted = view.find(claim_->token().hex()) != nullptr;
        state.is_waiting_writer = view.writer() == claim_->token().hex();
        std::string holder(view.owner());
        std::string host(view.host());
        // A holder without a ttl does not expire.
        if (retry_after > std::chrono::hours(24 * 3650))
            retry_after = std::chrono::milliseconds::zero();
        end();
        done_(create_outcome::busy(retry_after, std::move(holder), std::move(host)));
    }

    void on_conflicts_exhausted() override
    {
        state_of(*claim_).granted = false;
        end();
        done_(create_outcome::busy(retry_delay));
    }

    void failed(delivery request_state, failure_ptr failure) override
    {
        if (request_state == delivery::unanswered) {
            auto& state = state_of(*claim_);
            state.mark_in_doubt(request_expiry_);
            state.is_waiting_writer =
                state.is_waiting_writer || (claim_->keeps_place() && claim_->mode() == lock_mode::exclusive);
        }
        done_(create_outcome::failed(std::move(failure)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    const document owner_data_;
    /// Whether an earlier create of the claim was sent.
    const bool was_sent_before_;
    /// Whether this is the first attempt, so that no document can contain the token yet.
    bool is_first_;
    std::int64_t number_ = 0;
    /// Fence of a statement: the estimate of the server's clock. The statement is refused if this fence is not greater
    /// than the last.
    std::int64_t fence_ = 0;
    std::int64_t request_expiry_ = 0;
    int upsert_attempts_ = 0;
};

} // namespace

operation_ptr make_create(operation_client& owner, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new create_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
