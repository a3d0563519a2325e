// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {

enum class operation : unsigned char
{
    create,
    release,
    abandon,
    extend,
    is_valid,
    wait,
    hand_over,
    inspect,
    break_key,
    list,
    purge,
    create_all,
    group,
    export_ticket,
    adopt,
    close,
};
inline constexpr std::size_t operation_count = 16;
[[nodiscard]] const char* to_string(operation what) noexcept;

/// A record of an operation that the core started.
struct call
{
    operation what{};
    /// For hand_over: the key of the claim that is released. For create_all: all keys, separated by commas. For group:
    /// the id.
    std::string key{};
    colock::token token{};
    /// For extend: the new TTL. For close: the deadline. Otherwise: the TTL of the claim.
    std::chrono::milliseconds ttl{0};
    /// State of the claim when the operation was started; for hand_over, of the claim that is released.
    lease_clock::time_point sent{};
    bool in_doubt = false;
};

/// The fate of one operation: whether its request and its reply arrive, and when.
class step
{
public:
    /// The operation is executed and answered.
    [[nodiscard]] static step pass() { return step(action::pass); }
    /// The operation is held back until scripted_adapter::deliver() or discard(). After deliver() it is executed and
    /// answered. After discard() it is not executed, and ends with `outcome_unknown`. A wait that is held back is never
    /// woken.
    [[nodiscard]] static step hold() { return step(action::hold); }
    /// The operation ends with `outcome_unknown` now, and its request is held back as with hold(). This is the late
    /// request of a closed connection.
    [[nodiscard]] static step hold_unknown() { return step(action::hold_unknown); }
    /// The operation is not executed, and ends with `outcome_unknown`.
    [[nodiscard]] static step lose_request() { return step(action::lose_request); }
    /// The operation is executed, and ends with `outcome_unknown`.
    [[nodiscard]] static step lose_reply() { return step(action::lose_reply); }
    /// The operation is not executed, and ends with this failure. A wait has no failure: it just ends.
    [[nodiscard]] static step fail(errc code, std::string detail = {}, error_code cause = {});
    /// A create or an adopt is not executed, and ends as busy. For a hand_over only the release is executed. For a
    /// create_all the first claim is reported as busy.
    [[nodiscard]] static step busy(lease_clock::duration retry_after = {}, std::string holder = {});
    /// A release, abandon, extend or is_valid is not executed, and is answered with "not held".
    [[nodiscard]] static step not_held() { return step(action::not_held); }

    /// The answer of a release or hand_over says that other lockers wait for the key.
    step others_wait() &&;
    /// Delays the operation on its way to the backend, by lease_timer. Not for waits.
    step delay(lease_clock::duration span) &&;
    /// Called when the operation arrives, before it is executed. A test can move the clock here.
    step before(std::function<void()> hook) &&;
    /// Called after the operation was executed, before it is answered.
    step after(std::function<void()> hook) &&;

private:
    friend class scripted_adapter;
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
    explicit step(action what) noexcept : what_(what) {}

    action what_;
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

/// Decorator of an adapter that injects faults by a script, and records all calls. An operation without a step is
/// passed to the adapter below.
///
/// Late requests follow the contract of `abandon`: while a request of a claim is held back, abandoning that claim fails
/// with `unavailable`. It succeeds after the request was delivered or discarded. See trust_abandon().
///
/// Thread safety: all members may be called from any thread. With timing::posted and several threads, replies may
/// overtake each other.
class scripted_adapter : public adapter
{
public:
    explicit scripted_adapter(std::shared_ptr<adapter> backend, timing when = timing::posted);
    /// Uses another executor than the backend's. The context of that executor may be destroyed before the backend.
    scripted_adapter(std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing when = timing::posted);
    ~scripted_adapter() override;

    /// Queues a step for the next operation of this kind that has no step yet.
    void next(operation what, step how);
    /// Sets the step for each operation of this kind that finds no queued step.
    void always(operation what, step how);
    /// The same, with a function that makes the step. The function runs on the thread that starts the operation.
    void always(operation what, std::function<step()> make);
    /// Removes all queued steps and the steps of always(). Requests that are held back stay.
    void reset();
    /// Number of queued steps that were not used. If it is not zero at the end, the test has not tested what it
    /// intended.
    [[nodiscard]] std::size_t unused() const;

    /// All calls in the order in which they were started.
    [[nodiscard]] std::vector<call> calls() const;
    [[nodiscard]] std::size_t count(operation what) const;
    void forget_calls();
    /// Violations of the contract of `adapter` by the core: two operations of one claim at once, or an operation that
    /// was started before the claim's wait had ended or was cancelled.
    [[nodiscard]] std::vector<std::string> breaches() const;

    /// Number of requests that are held back now.
    [[nodiscard]] std::size_t held() const;
    /// Number of held requests whose claim was cancelled after they were sent.
    [[nodiscard]] std::size_t unwanted_count() const;
    /// Delivers the oldest request that is held back. Returns false if there is none.
    bool deliver();
    /// Discards the oldest request that is held back. Returns false if there is none.
    bool discard();

    /// Passes abandon on even if a request of its claim is held back, like a backend that breaks the contract.
    void trust_abandon(bool trust);
    /// Reports these capabilities. Default: the capabilities of the backend below, with `immediate` according to the
    /// timing.
    void set_capabilities(colock::capabilities given);
    void set_limits(adapter_limits given);
    /// Default: the value of the backend below.
    void set_max_clock_lead(std::chrono::milliseconds given);

    /// From now on each grant is tied to a session, as on a backend that ends the locks of a lost client. The grant is
    /// valid until `until` at most.
    void open_session(lease_clock::time_point until);
    /// Extends the session until `until`. Returns false if the session had expired already.
    [[nodiscard]] bool extend_session(lease_clock::time_point until);
    /// Ends the session. Later grants are not tied to a session.
    void end_session();

    using adapter::contact;

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
        std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done) override;
    void start_export(claim_ptr held, completion<export_outcome> done) override;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override;
    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override;
    void cancel_close() noexcept override { ++cancelled_closes; }

    int cancelled_closes = 0;

private:
    struct state;
    /// An operation on its way; defined in scripted_state.hpp.
    template <class Outcome>
    struct pending_call;

    [[nodiscard]] step begin(call started);
    [[nodiscard]] step begin(operation what, const claim_ptr& claim, std::chrono::milliseconds ttl);
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
