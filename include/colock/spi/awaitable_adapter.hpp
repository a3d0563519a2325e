// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>

#include <memory>

namespace colock::inline v0 {

/// Base class for adapters that are written with coroutines. Each operation is a coroutine that is spawned on the
/// adapter's executor and keeps the adapter alive. Four functions are pure virtual; all others have a default. The
/// requirements of each function are documented at the corresponding operation of `adapter`.
///
/// An exception that leaves a coroutine becomes a failure. A code of errc is used as it is. Any other error becomes
/// `errc::outcome_unknown`, with that error as the cause. Each operation costs a `co_spawn`.
///
/// If the context has more than one thread, pass a strand as the executor. Then no two of the coroutines run at the
/// same time, and their shared data need no mutex. Only `do_wait` is ever cancelled.
class COLOCK_EXPORT awaitable_adapter : public adapter
{
public:
    /// \param executor runs the coroutines, and the timers of the lockers.
    explicit awaitable_adapter(asio::any_io_executor executor);
    ~awaitable_adapter() override;

    void start_create(claim_ptr claim, completion<create_outcome> done) final;
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) final;
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) final;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) final;
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done) final;
    void cancel_wait(claim& claim) noexcept final;
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) final;
    void start_listing(listing_request request, completion<list_outcome> done) final;
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) final;
    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) final;
    void start_export(claim_ptr held, completion<export_outcome> done) final;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) final;
    void start_close(lease_clock::duration deadline, completion<close_outcome> done) final;

protected:
    /// Must be overridden: the body of adapter::start_create.
    [[nodiscard]] virtual asio::awaitable<create_outcome> do_create(claim_ptr claim) = 0;
    /// Must be overridden: the body of adapter::start_release. It may ignore `guarantee` only if there is no queue, and
    /// requests cannot arrive late or out of order.
    [[nodiscard]] virtual asio::awaitable<release_outcome> do_release(claim_ptr claim, release_guarantee guarantee) = 0;
    /// Must be overridden: the body of adapter::start_extend.
    [[nodiscard]] virtual asio::awaitable<extend_outcome> do_extend(claim_ptr claim, std::chrono::milliseconds ttl) = 0;
    /// Must be overridden: the body of adapter::start_is_valid.
    [[nodiscard]] virtual asio::awaitable<valid_outcome> do_is_valid(claim_ptr claim) = 0;

    /// May be overridden: the body of adapter::start_wait. Returns when the lock may be free. It may return early, and
    /// it may throw. It must check whether the lock is already free, because a release between the busy answer and this
    /// call must not be missed. Default: returns at `until`.
    ///
    /// `cancel_wait` cancels the coroutine by Asio's cancellation (terminal). The signal is emitted on the strand of
    /// the coroutine, which uses the adapter's executor; the operation that the coroutine awaits ends with
    /// `operation_aborted`. The core does not wait for this: the next operation of the claim, or another wait, may
    /// begin before this coroutine has ended. The coroutine must therefore not access `claim::slot` after it was
    /// cancelled.
    [[nodiscard]] virtual asio::awaitable<void> do_wait(claim_ptr claim, lease_clock::time_point until);
    /// May be overridden: the body of adapter::start_hand_over. Default: `do_release`, which settles a claim that is in
    /// doubt, and then `do_create`.
    [[nodiscard]] virtual asio::awaitable<hand_over_outcome> do_hand_over(claim_ptr held, claim_ptr next);
    /// May be overridden: the body of adapter::start_listing. Required for `capabilities::list`. Default:
    /// `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<list_outcome> do_listing(listing_request request);
    /// May be overridden: the body of adapter::start_create_all. Required for `capabilities::create_all`. Default:
    /// `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<create_all_outcome> do_create_all(std::vector<claim_ptr> claims);
    /// May be overridden: the body of adapter::start_group. Required for `capabilities::groups` and
    /// `capabilities::extends_groups`. Default: `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<group_outcome> do_group(
        std::string id, group_action action, std::chrono::milliseconds ttl);
    /// May be overridden: the body of adapter::start_export. Required for `capabilities::tickets`. Default:
    /// `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<export_outcome> do_export(claim_ptr held);
    /// May be overridden: the body of adapter::start_adopt. Required for `capabilities::tickets`. Default:
    /// `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<create_outcome> do_adopt(std::string ticket, claim_ptr claim);
    /// May be overridden: the body of adapter::start_close. Default: does nothing, for an adapter without connections.
    [[nodiscard]] virtual asio::awaitable<void> do_close(lease_clock::duration deadline);

private:
    class waits;
    const std::unique_ptr<waits> waits_;
};

} // namespace colock::inline v0
