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
    adopt,
    close,
};
inline constexpr std::size_t operation_count = 15;
[[nodiscard]] const char* to_string(operation what) noexcept;

/// One operation that the core started.
struct call
{
    operation what{};
    /// For hand_over: of the claim that is given back; for create_all: of all, with commas; for group: its id.
    std::string key{};
    colock::token token{};
    /// Of an extend: the new one; of a close: its deadline; else the claim's.
    std::chrono::milliseconds ttl{0};
    /// What the claim said of when it was started; of a hand_over the one that is given back.
    lease_clock::time_point sent{};
    bool in_doubt = false;
};

/// What is to become of one operation on its way to the backend and back.
class step
{
public:
    /// Carried out and answered.
    [[nodiscard]] static step pass() { return step(action::pass); }
    /// Kept back until scripted_adapter::deliver (then it is carried out and answered) or discard (then it is not, and
    /// ends as `outcome_unknown`). A wait that is held is never woken.
    [[nodiscard]] static step hold() { return step(action::hold); }
    /// Ends as `outcome_unknown` now, and is kept back like hold(): the late bytes of a dead connection.
    [[nodiscard]] static step hold_unknown() { return step(action::hold_unknown); }
    /// Not carried out; ends as `outcome_unknown`.
    [[nodiscard]] static step lose_request() { return step(action::lose_request); }
    /// Carried out; ends as `outcome_unknown`.
    [[nodiscard]] static step lose_reply() { return step(action::lose_reply); }
    /// Not carried out; ends with that failure. A wait has none, and just ends.
    [[nodiscard]] static step fail(errc code, std::string detail = {}, error_code cause = {});
    /// A create or an adopt is not carried out and ends as busy; of a hand_over the release is carried out; of a
    /// create_all the first claim is in the way.
    [[nodiscard]] static step busy(lease_clock::duration retry_after = {}, std::string holder = {});
    /// A release, abandon, extend or is_valid is not carried out and answered with "not held".
    [[nodiscard]] static step not_held() { return step(action::not_held); }

    /// A release or hand_over is answered with word that other lockers listen for it.
    step others_wait() &&;
    /// On the way to the backend, by lease_timer. Not for waits.
    step delay(lease_clock::duration span) &&;
    /// Called when the operation arrives, before it is carried out: a place to move the clock.
    step before(std::function<void()> hook) &&;
    /// Called when it has been carried out, before it is answered.
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

/// When operations end.
enum class timing : unsigned char
{
    /// In a handler of their own, as with a remote backend.
    posted,
    /// Inside the call that starts them, if the backend below does so. Steps that hold or delay break the promise of
    /// `capabilities::immediate`; do not script them.
    immediate,
};

/// A backend with faults by appointment: a decorator that passes operations on to another adapter, or does with them
/// what a script says, and writes down what was asked of it. What no step is queued for passes.
///
/// Late requests follow the contract of `abandon`: while a request of a claim is held back, abandoning that claim fails
/// with `unavailable`, until the request has been delivered or discarded. See trust_abandon().
///
/// Thread safety: all members may be called from any thread. With timing::posted and several threads, replies may
/// overtake each other.
class scripted_adapter final : public adapter
{
public:
    explicit scripted_adapter(std::shared_ptr<adapter> backend, timing when = timing::posted);
    /// On another executor than the backend's: its context may die before the backend does.
    scripted_adapter(std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing when = timing::posted);
    ~scripted_adapter() override;

    /// Queues a step for the next operation of that kind that has none yet.
    void next(operation what, step how);
    /// For every operation of that kind that finds no queued step.
    void always(operation what, step how);
    /// The same with a step made for each, on the thread that starts the operation.
    void always(operation what, std::function<step()> make);
    /// Forgets queued steps and those for always; what is held back stays.
    void reset();
    /// Steps that were queued and not used: a test that ends with some has not seen what it was about.
    [[nodiscard]] std::size_t unused() const;

    /// In the order in which they were started.
    [[nodiscard]] std::vector<call> calls() const;
    [[nodiscard]] std::size_t count(operation what) const;
    void forget_calls();
    /// Where the core broke the contract of adapter: two operations of one claim at once, or one before the claim's
    /// wait had ended or was cancelled.
    [[nodiscard]] std::vector<std::string> breaches() const;

    /// Requests that are held back now.
    [[nodiscard]] std::size_t held() const;
    /// Those of them whose claim was cancelled meanwhile.
    [[nodiscard]] std::size_t held_for_nobody() const;
    /// Lets the oldest one that is held back arrive; false if there is none.
    bool deliver();
    /// Loses the oldest one that is held back; false if there is none.
    bool discard();

    /// Lets abandon through although a request of its claim is held back: a backend that breaks the contract.
    void trust_abandon(bool trust);
    /// Pretends to be able to do this. Default: what the backend below can, `immediate` as the timing says.
    void set_capabilities(colock::capabilities pretended);
    void set_limits(adapter_limits pretended);
    /// Default: that of the backend below.
    void set_max_clock_lead(std::chrono::milliseconds pretended);

    /// From now on a grant is tied to a session, as on a backend that ends what a lost client held: it is good until
    /// then at the most.
    void open_session(lease_clock::time_point until);
    /// Proof that it lives until then; false if it had passed already.
    [[nodiscard]] bool raise_session(lease_clock::time_point until);
    /// It has ended; what is granted from now on is tied to none.
    void end_session();

    using adapter::end_connecting;
    using adapter::notify_connecting;
    using adapter::notify_ready;
    using adapter::notify_reconnected;
    using adapter::notify_suspended;
    using adapter::notify_unreachable;
    using adapter::notify_warning;

    [[nodiscard]] std::string_view name() const noexcept override;
    [[nodiscard]] colock::capabilities capabilities() const noexcept override;
    [[nodiscard]] adapter_limits limits() const noexcept override;
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override;

    void start_create(claim_ptr claim, completion<create_outcome> done) override;
    void start_release(claim_ptr claim, completion<release_outcome> done) override;
    void start_abandon(claim_ptr claim, completion<release_outcome> done) override;
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) override;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override;
    void start_wait(claim_ptr claim, lease_clock::time_point until, completion<woken> done) override;
    void cancel_wait(claim& claim) noexcept override;
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override;
    void start_inspect(std::string key, completion<list_outcome> done) override;
    void start_break(std::string key, completion<list_outcome> done) override;
    void start_list(filter which, std::string cursor, completion<list_outcome> done) override;
    void start_purge(std::size_t limit, std::string cursor, completion<list_outcome> done) override;
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override;
    void start_group(
        std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done) override;
    [[nodiscard]] std::string export_ticket(const claim& held) const override;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override;
    void start_close(lease_clock::duration deadline, completion<closed> done) override;
    void cancel_close() noexcept override { ++cancelled_closes; }

    int cancelled_closes = 0;

private:
    struct state;
    /// An operation on its way; see the source.
    template <class Outcome>
    struct trip;

    [[nodiscard]] step begin(call started);
    [[nodiscard]] step begin(operation what, const claim_ptr& claim, std::chrono::milliseconds ttl);
    template <class Outcome>
    void run(trip<Outcome> started);
    template <class Outcome>
    void travel(trip<Outcome> departing);
    template <class Outcome>
    void arrive(trip<Outcome> arrived);
    template <class Outcome>
    void hold_back(trip<Outcome> kept);
    [[nodiscard]] std::shared_ptr<scripted_adapter> self();
    void join_session(const claim_ptr& granted);

    const std::shared_ptr<adapter> backend_;
    const timing timing_;
    const std::shared_ptr<state> state_;
};

} // namespace colock::testing
