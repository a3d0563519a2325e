// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <memory>

namespace colock {

/// The easy way to write an adapter: each operation is a coroutine, spawned on the adapter's executor, and keeps the
/// adapter alive. Four are to be written; each other one has a default. What each has to promise is said at the
/// operation of `adapter` that it carries out.
///
/// An exception that leaves one becomes a failure: a code of errc as it is, any other as `errc::outcome_unknown` with
/// it as cause. Costs a `co_spawn` per operation.
///
/// Where the context has more threads than one, give a strand as executor: then no two of the coroutines run at the
/// same time, and what they share needs no mutex. None but `do_wait` is ever cancelled.
class awaitable_adapter : public adapter
{
public:
    explicit awaitable_adapter(asio::any_io_executor executor);
    ~awaitable_adapter() override;

    void start_create(claim_ptr claim, completion<create_outcome> done) final;
    void start_release(claim_ptr claim, completion<release_outcome> done) final;
    void start_abandon(claim_ptr claim, completion<release_outcome> done) final;
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) final;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) final;
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<woken> done) final;
    void cancel_wait(claim& claim) noexcept final;
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) final;
    void start_inspect(std::string key, completion<list_outcome> done) final;
    void start_break(std::string key, completion<list_outcome> done) final;
    void start_list(filter which, std::string cursor, completion<list_outcome> done) final;
    void start_purge(std::size_t limit, std::string cursor, completion<list_outcome> done) final;
    void start_group(
        std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done) final;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) final;
    void start_close(lease_clock::duration deadline, completion<closed> done) final;

protected:
    [[nodiscard]] virtual asio::awaitable<create_outcome> do_create(claim_ptr claim) = 0;
    [[nodiscard]] virtual asio::awaitable<release_outcome> do_release(claim_ptr claim) = 0;
    /// Default: `do_release`, right where requests cannot arrive late or out of order, and where there is no queue.
    [[nodiscard]] virtual asio::awaitable<release_outcome> do_abandon(claim_ptr claim);
    [[nodiscard]] virtual asio::awaitable<extend_outcome> do_extend(claim_ptr claim, std::chrono::milliseconds ttl) = 0;
    [[nodiscard]] virtual asio::awaitable<valid_outcome> do_is_valid(claim_ptr claim) = 0;

    /// Returns when the lock may be free; early is safe, and so is an exception. It must look itself whether the lock
    /// is free already: a release between the busy answer and this call may not be missed.
    ///
    /// `cancel_wait` ends it by Asio's cancellation (terminal), emitted on the strand on which it runs, which is one
    /// over the adapter's executor; what it awaits then ends with `operation_aborted`. The core does not wait for that:
    /// the next operation of the claim, another wait included, may begin before this one has let go, so it must not
    /// touch `claim::slot` on its way out. Default: returns at `until`.
    [[nodiscard]] virtual asio::awaitable<void> do_wait(claim_ptr claim, lease_clock::time_point until);
    /// Default: `do_release`, or `do_abandon` for a claim that is in doubt, and then `do_create`.
    [[nodiscard]] virtual asio::awaitable<hand_over_outcome> do_hand_over(claim_ptr held, claim_ptr next);
    /// These four come with `capabilities::list`. Default: `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<list_outcome> do_inspect(std::string key);
    [[nodiscard]] virtual asio::awaitable<list_outcome> do_break(std::string key);
    [[nodiscard]] virtual asio::awaitable<list_outcome> do_list(filter which, std::string cursor);
    [[nodiscard]] virtual asio::awaitable<list_outcome> do_purge(std::size_t limit, std::string cursor);
    /// Comes with `capabilities::groups`, and with `capabilities::extends_groups`. Default: `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<group_outcome> do_group(
        std::string id, group_action what, std::chrono::milliseconds ttl);
    /// With `capabilities::tickets`, as is `export_ticket`. Default: `errc::unsupported`.
    [[nodiscard]] virtual asio::awaitable<create_outcome> do_adopt(std::string ticket, claim_ptr claim);
    /// Default: nothing is there to be closed.
    [[nodiscard]] virtual asio::awaitable<void> do_close(lease_clock::duration deadline);

private:
    class waits;
    const std::unique_ptr<waits> waits_;
};

} // namespace colock
