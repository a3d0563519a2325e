// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/spi/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

/// The operations of an adapter.
enum class operation : unsigned char
{
    /// Tries once to acquire a lock. An acquire that waits tries several times.
    create,
    /// Releases a lock.
    release,
    /// Ends a claim that may hold something: after an acquire was cancelled or its outcome is unknown, after a release
    /// that was not answered, and after a lock was lost. Repeated in the background until it succeeds.
    abandon,
    /// Renews or extends a lease.
    extend,
    /// `lock::is_locked`.
    is_valid,
    /// Waits for the release of another holder.
    wait,
    /// Releases a lock and acquires it for the next waiter of the same locker.
    hand_over,
    /// `locker::is_locked` and other queries of one key.
    inspect,
    /// `locker::break_lock`.
    break_key,
    /// `locker::list`, one page.
    list,
    /// `locker::purge`, one step.
    purge,
    /// Tries once to acquire several locks, for `acquire_all`.
    create_all,
    /// Releases or extends a group by its id.
    group,
    /// `lock::detach`.
    export_ticket,
    /// `locker::adopt`.
    adopt,
    /// Closes the connections, for `locker::shutdown`.
    close,
};
/// The number of operations.
inline constexpr std::size_t operation_count = static_cast<std::size_t>(operation::close) + 1;

/// Returns the name of the enumerator.
[[nodiscard]] const char* to_string(operation kind) noexcept;

/// Describes what happens to one operation: whether its request and its reply arrive, and when.
class step
{
public:
    /// The operation is executed and answered.
    [[nodiscard]] static step pass() { return step(action::pass); }
    /// The operation is not executed, and ends with this failure. Use `errc::unavailable` for a backend that is down. A
    /// wait has no failure: it just ends.
    [[nodiscard]] static step fail(errc code, std::string detail = {}, error_code cause = {});
    /// The operation is not executed, and ends with `errc::outcome_unknown`.
    [[nodiscard]] static step lose_request() { return step(action::lose_request); }
    /// The operation is executed, and ends with `errc::outcome_unknown`.
    [[nodiscard]] static step lose_reply() { return step(action::lose_reply); }
    /// A create or an adopt is not executed, and ends as busy. For a hand_over only the release is executed. For a
    /// create_all the first claim is reported as busy.
    /// \param retry_after the remaining time of the holder, or zero if the backend does not know it
    /// \param holder the owner of the lock, for messages
    [[nodiscard]] static step busy(lease_clock::duration retry_after = {}, std::string holder = {});
    /// A release, abandon, extend or is_valid is not executed, and is answered with "not held". An extend that is
    /// answered so is how a holder learns that its lock was taken.
    [[nodiscard]] static step not_held() { return step(action::not_held); }
    /// The operation is held back until scripted_adapter::deliver() or discard(). After deliver() it is executed and
    /// answered. After discard() it is not executed, and ends with `outcome_unknown`. A wait that is held back is never
    /// woken.
    [[nodiscard]] static step hold() { return step(action::hold); }
    /// The operation ends with `outcome_unknown` now, and its request is held back as with hold(). This is the late
    /// request of a closed connection.
    [[nodiscard]] static step hold_unknown() { return step(action::hold_unknown); }

    /// Delays the operation on its way to the backend, by lease_timer. Not for waits, and not for requests that are
    /// held back.
    step delay(lease_clock::duration span) &&;
    /// Sets a function that is called when the operation arrives, or would arrive if it were not lost or refused. Not
    /// for waits.
    step before(std::function<void()> hook) &&;
    /// Sets a function that is called before the operation is answered. Not for waits.
    step after(std::function<void()> hook) &&;

private:
    friend class scripted_adapter;
    friend class instrumented_adapter;
    enum class action : unsigned char
    {
        pass,
        hold,
        hold_unknown,
        lose_request,
        lose_reply,
        fail,
        busy,
        not_held,
    };
    explicit step(action kind) noexcept : action_(kind) {}

    action action_;
    failure_ptr error_;
    lease_clock::duration retry_after_{0};
    std::string holder_;
    bool others_wait_ = false;
    lease_clock::duration delay_{0};
    std::function<void()> before_;
    std::function<void()> after_;
};

/// When operations complete.
enum class timing : unsigned char
{
    /// In their own handlers, as with a remote backend.
    posted,
    /// Inside the call that starts them, if the backend below does so. Steps that hold or delay an operation would
    /// break `capabilities::immediate`, so do not use them.
    immediate,
};

/// Adapter that passes operations to another adapter, and injects faults by a script. An operation without a step is
/// executed and answered. Made for the memory adapter: it does not report the connections of the adapter below.
///
///     const auto store = colock::memory::make_adapter(io.get_executor());
///     const auto backend = std::make_shared<colock::testing::scripted_adapter>(store);
///     colock::locker mine(backend);   // the process under test
///     colock::locker theirs(store);   // another process, which sees no faults
///     backend->next(colock::testing::operation::release, colock::testing::step::fail(colock::errc::unavailable));
///
/// While a request of a claim is held back, abandoning that claim fails with `unavailable`, because the request may
/// still arrive.
///
/// Thread safety: all members may be called from any thread. With timing::posted and several threads, replies may
/// overtake each other.
class scripted_adapter : public adapter
{
public:
    /// Makes an adapter on the executor of `backend`.
    explicit scripted_adapter(std::shared_ptr<adapter> backend, timing completions = timing::posted);
    ~scripted_adapter() override;

    /// Queues a step for the next operation of this kind that has no step yet.
    void next(operation kind, step behavior);
    /// Sets the step for each operation of this kind that finds no queued step.
    void always(operation kind, step behavior);
    /// Sets a function that makes the step for each operation of this kind that finds no queued step. The function runs
    /// on the thread that starts the operation.
    void always(operation kind, std::function<step()> make_step);
    /// Removes all queued steps and the steps of always(). Requests that are held back stay, and the connection is not
    /// restored.
    void reset();
    /// Returns the number of queued steps that were not used. If it is not zero at the end, the test has not tested
    /// what it intended.
    [[nodiscard]] std::size_t unused_count() const;

    /// Loses the connection. From now on, operations without a step fail with `unavailable` at once, except waits and a
    /// close. Observers receive `suspended`, and each held lock is at risk. Requests that were delayed or held back are
    /// not affected.
    void disconnect();
    /// Restores the connection. Observers receive `reconnected`.
    void reconnect();

    /// Returns the number of operations of this kind that were started.
    [[nodiscard]] std::size_t count(operation kind) const;

    /// Returns the number of requests that are held back now.
    [[nodiscard]] std::size_t held_count() const;
    /// Delivers the oldest request that is held back. Returns false if there is none.
    bool deliver();
    /// Discards the oldest request that is held back. Returns false if there is none.
    bool discard();

    [[nodiscard]] adapter_traits traits() const noexcept override;
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override;

    void start_create(claim_ptr claim, completion<create_outcome> done) override;
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override;
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override;
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done) override;
    void cancel_wait(claim& claim) noexcept override;
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override;
    void start_listing(listing_request request, completion<list_outcome> done) override;
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override;
    void start_group(
        std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done) override;
    void start_export(claim_ptr held, completion<export_outcome> done) override;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override;
    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override;
    void cancel_close() noexcept override;

private:
    // The tests of colock's core, which also check how the core uses an adapter.
    friend class instrumented_adapter;
    struct call;
    struct state;
    /// An operation on its way; defined in scripted_state.hpp.
    template <class Outcome>
    struct pending_call;

    scripted_adapter(std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing completions);
    [[nodiscard]] step begin(call started);
    [[nodiscard]] step begin(operation kind, const claim_ptr& claim, std::chrono::milliseconds ttl);
    template <class Outcome>
    void run(pending_call<Outcome> started);
    template <class Outcome>
    void forward(pending_call<Outcome> started);
    template <class Outcome>
    void execute(pending_call<Outcome> started);
    template <class Outcome>
    void hold_back(pending_call<Outcome> kept);
    [[nodiscard]] std::shared_ptr<scripted_adapter> self();
    void join_session(const claim_ptr& granted);

    const std::shared_ptr<adapter> backend_;
    const timing timing_;
    const std::shared_ptr<state> state_;
};

} // namespace colock::testing
