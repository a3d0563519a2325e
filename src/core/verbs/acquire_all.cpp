// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/acquire_step.hpp"
#include "core/collisions.hpp"
#include "core/core.hpp"
#include "core/departure.hpp"
#include "core/failures.hpp"
#include "core/handles.hpp"
#include "core/joint_attempt.hpp"
#include "core/letting_go.hpp"
#include "core/unscheduled.hpp"
#include "core/verbs.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace colock::detail::verbs {

namespace {

/// Ends early, with an exception, if the locker does.
asio::awaitable<void> pause(std::shared_ptr<core> self, const record& wanted, lease_clock::time_point until)
{
    const unscheduled at_end{*self, self->pausing};
    parked place;
    place.ends_when_closed = true;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            if (self->closed_to_new || lease_clock::now() >= until)
                break;
            self->timers.schedule(self->pausing, std::min(self->pausing.due, until));
            seen = self->pausing.version;
        }
        throw_if_inherited(*self, wanted);
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await self->park(self->pausing, place, seen);
    }
    if (self->closed_to_new)
        throw_shutting_down(*self, wanted);
}

/// A group that loses again and again keeps out of the way for as long as its policy waits, and may do so for this long
/// even if that looks again sooner: until each of many has had its round, more time may pass.
constexpr lease_clock::duration longest_of_the_impatient = std::chrono::seconds(1);

bool is_exclusive(const group_member& member) noexcept
{
    return member.mode == lock_mode::exclusive;
}

/// Sorted by key, each once and with its mode.
std::vector<group_member> in_canonical_order(const core& self, std::vector<group_member> members, lock_mode by_default)
{
    const auto refuse = [&](std::string key, std::string why) {
        throw validation_error(
            errc::invalid_options, {.key = std::move(key), .backend = self.backend_name(), .detail = std::move(why)});
    };
    if (members.empty())
        refuse({}, "the list of keys is empty; name at least one, or use acquire_global()");
    for (auto& each : members)
        each.mode = each.mode.value_or(by_default);
    std::ranges::sort(members, {}, &group_member::key);
    const auto same_key = [](const group_member& one, const group_member& other) { return one.key == other.key; };
    const auto differ = std::ranges::adjacent_find(
        members, [&](const auto& one, const auto& other) { return same_key(one, other) && one.mode != other.mode; });
    if (differ != members.end())
        refuse(differ->key, "the key is named twice, with different modes; name it once, with the mode that it needs");
    const auto again = std::ranges::unique(members, same_key);
    members.erase(again.begin(), again.end());
    return members;
}

bool all_held(const std::vector<lock>& locks) noexcept
{
    return std::all_of(locks.begin(), locks.end(), [](const lock& each) { return each.held(); });
}

/// One key of a group, from the first attempt until it is granted or given up.
struct candidate
{
    record::ptr wanted;
    departure leaving;

    candidate(core& owner, record::ptr subject) : wanted(std::move(subject)), leaving(owner, wanted)
    {
        leaving.takes_time();
    }
};

/// Takes several locks, all or none: in rounds, each of which tries the keys in their canonical order. A round that
/// finds a key busy gives all back; the next one begins when that key's turn has come. Nobody waits while it holds
/// anything, and who holds the highest key goes on: some group always gets all of its own.
///
/// Where the backend takes several locks in one step, a round is one attempt at all of them, which holds all or
/// nothing. Not so while others of this locker wait for one of the keys: it would overtake them.
///
/// Meanwhile it stands in the busy key's local queue like any other, so that a stream of others cannot shut it out. It
/// does not take what its turn offers before it has come to that key in order.
class gathering
{
public:
    gathering(std::shared_ptr<core> owner, std::vector<group_member> members, const acquire_options& options)
        : core_(std::move(owner)), members_(std::move(members)), options_(options),
          policy_(options.retry.value_or(core_->options.retry)),
          at_once_(core_->can.several && members_.size() > 1 && members_.size() <= most_at_once &&
                   std::ranges::all_of(members_, &is_exclusive)),
          schedule_(policy_, lease_clock::now())
    {
        for (auto member = members_.rbegin(); member != members_.rend(); ++member)
            prepared_.push_back(prepare(*member));
        for (auto each = prepared_.rbegin(); each != prepared_.rend(); ++each)
            throw_if_refused(*core_, **each);
    }

    [[nodiscard]] asio::awaitable<lock_group> run();

private:
    using candidate_ptr = std::unique_ptr<candidate>;

    [[nodiscard]] record::ptr prepare(const group_member& member) const;
    [[nodiscard]] candidate_ptr make_candidate(const group_member& member);
    // These end with the key that is busy, or with none.
    [[nodiscard]] asio::awaitable<candidate_ptr> round(candidate_ptr waited);
    [[nodiscard]] asio::awaitable<candidate_ptr> one_by_one(candidate_ptr waited);
    /// Of those that were asked for together.
    [[nodiscard]] asio::awaitable<candidate_ptr> await_answers(std::vector<candidate_ptr> asked);
    [[nodiscard]] std::vector<candidate_ptr> line_up(candidate_ptr& waited);
    [[nodiscard]] asio::awaitable<void> await_answer(record& asked);
    [[nodiscard]] asio::awaitable<void> give_back();
    [[nodiscard]] asio::awaitable<bool> attempt(candidate_ptr& one, const group_member& member);
    [[nodiscard]] asio::awaitable<bool> attempt_with_leave(candidate& one);
    [[nodiscard]] asio::awaitable<step> proceed(candidate& one, step until);
    [[nodiscard]] candidate_ptr in_order(candidate_ptr waited);
    /// Ends with the candidate that the next round may attempt, if there is one.
    [[nodiscard]] asio::awaitable<candidate_ptr> await_turn(candidate_ptr busy);
    void note_failure(const candidate& busy);
    [[nodiscard]] asio::awaitable<void> start_again_after_loss();

    const std::shared_ptr<core> core_;
    /// In their canonical order, each with its mode.
    const std::vector<group_member> members_;
    const acquire_options options_;
    const retry_policy policy_;
    /// The backend may be asked for all in one step.
    const bool at_once_;
    retry_schedule schedule_;
    const std::string group_ = token::generate().hex();
    /// For the first round, in reverse order.
    std::vector<record::ptr> prepared_;
    std::vector<lock> locks_;
    collisions collisions_;
    /// The last round has asked for all at once, while one was granted already.
    bool kept_others_out_ = false;
    lease_clock::time_point round_began_{};
    std::uint32_t rounds_ = 0;
    lease_clock::duration answer_took_{0};
    /// The next round is one for what the last left in doubt.
    std::uint8_t looks_ = 0;
    /// Of the last round, if it was not a busy key that ended it.
    failure_ptr last_error_;
};

record::ptr gathering::prepare(const group_member& member) const
{
    auto options = options_;
    options.mode = *member.mode;
    // Of a list with both modes, the limit is the shared ones'. One of exclusive locks alone is refused with it.
    if (is_exclusive(member) && !std::ranges::all_of(members_, &is_exclusive))
        options.max_holders = 0;
    auto wanted = verbs::prepare(core_, std::string(member.key), std::move(options), renewal::manual, true, group_);
    wanted->attempting.asks_leave(&member != &members_.front());
    wanted->started = schedule_.start();
    return wanted;
}

/// It takes over what the group has seen: an acquire that ends tells how the last round ended.
gathering::candidate_ptr gathering::make_candidate(const group_member& member)
{
    record::ptr wanted;
    if (!prepared_.empty() && prepared_.back()->key() == member.key) {
        wanted = std::move(prepared_.back());
        prepared_.pop_back();
    } else {
        wanted = prepare(member);
    }
    prepare_token(*core_, *wanted);
    wanted->attempts_made = rounds_;
    wanted->attempting.answer_took(answer_took_);
    wanted->attempting.looks(looks_);
    wanted->outcome().error = last_error_;
    return std::make_unique<candidate>(*core_, std::move(wanted));
}

asio::awaitable<lock_group> gathering::run()
{
    candidate_ptr busy;
    for (;;) {
        std::exception_ptr failure;
        try {
            busy = co_await round(std::move(busy));
        } catch (const error&) {
            failure = std::current_exception();
        } catch (const boost::system::system_error&) {
            // A cancellation does not wait for what is given back.
            throw;
        } catch (...) {
            failure = std::current_exception();
        }
        if (!failure && !busy && all_held(locks_))
            co_return core::handles::make_group(core_, group_, std::move(locks_));
        if (busy)
            note_failure(*busy);
        const bool lost = !failure && !busy;
        co_await give_back();
        if (failure)
            std::rethrow_exception(failure);
        if (lost)
            co_await start_again_after_loss();
        else
            busy = co_await await_turn(std::move(busy));
    }
}

/// Newest first, all at once: answers that do not come are not waited for one after the other, nor beyond the policy's
/// total time.
asio::awaitable<void> gathering::give_back()
{
    auto locks = std::exchange(locks_, {});
    std::vector<record::ptr> ending;
    for (auto each = locks.rbegin(); each != locks.rend(); ++each) {
        ending.emplace_back(&core::handles::record_of(*each));
        let_go(*core_, *ending.back());
    }
    {
        const std::lock_guard guard(core_->mutex);
        const auto until =
            std::min(saturating_add(lease_clock::now(), core_->options.operation_timeout), schedule_.deadline());
        for (const auto& each : ending)
            each->back().answer_deadline = until;
    }
    parked place;
    for (const auto& each : ending) {
        std::uint32_t seen = 0;
        while (must_await_answer(*core_, *each, seen))
            co_await core_->park(*each, place, seen);
    }
}

asio::awaitable<gathering::candidate_ptr> gathering::round(candidate_ptr waited)
{
    round_began_ = lease_clock::now();
    if (!at_once_ || (waited && waited->wanted->where() != phase::acquiring))
        co_return co_await one_by_one(std::move(waited));
    if (core_->closed_to_new)
        throw_shutting_down(*core_, *prepare(members_.front()));
    if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
    auto asked = line_up(waited);
    if (asked.empty())
        co_return co_await one_by_one(std::move(waited));
    co_return co_await await_answers(std::move(asked));
}

asio::awaitable<gathering::candidate_ptr> gathering::one_by_one(candidate_ptr waited)
{
    if (waited && core_->can.fifo)
        waited = in_order(std::move(waited));
    for (const auto& member : members_) {
        auto one = waited && waited->wanted->key() == member.key ? std::move(waited) : make_candidate(member);
        if (!co_await attempt(one, member))
            co_return one;
        one->leaving.dismiss();
        locks_.push_back(record::make_lock(std::move(one->wanted), std::shared_ptr(core_)));
    }
    co_return nullptr;
}

/// Asks for all of them; none if others of this locker wait for one of the keys.
std::vector<gathering::candidate_ptr> gathering::line_up(candidate_ptr& waited)
{
    // Its last release may yet arrive: another goes on for it.
    if (waited && waited->wanted->spent())
        waited.reset();
    std::vector<candidate_ptr> asked;
    std::vector<record::ptr> wanted;
    std::optional<std::size_t> place;
    for (const auto& member : members_) {
        if (waited && waited->wanted->key() == member.key) {
            place = asked.size();
            asked.push_back(std::move(waited));
        } else {
            asked.push_back(make_candidate(member));
        }
        wanted.push_back(asked.back()->wanted);
    }
    {
        // Each is wanted together with the others, the first as well. Who comes to its key looks at that.
        const std::lock_guard guard(core_->mutex);
        for (const auto& each : wanted)
            each->attempting.asks_leave(true);
    }
    if (attempt_all(*core_, wanted, schedule_))
        return asked;
    if (place)
        waited = std::move(asked[*place]);
    return {};
}

asio::awaitable<gathering::candidate_ptr> gathering::await_answers(std::vector<candidate_ptr> asked)
{
    for (const auto& each : asked)
        co_await await_answer(*each->wanted);
    candidate_ptr busy;
    for (auto& each : asked) {
        if (each->wanted->where() != phase::acquiring) {
            each->leaving.dismiss();
            locks_.push_back(record::make_lock(std::move(each->wanted), std::shared_ptr(core_)));
        } else if (!busy && is_answered(*core_, *each->wanted)) {
            busy = std::move(each);
        }
    }
    // Of the others nothing was said: they leave their queues to those behind them, and give back what a queue of the
    // backend's has granted one of them meanwhile.
    kept_others_out_ = core_->can.fifo && std::ranges::any_of(asked, [](const candidate_ptr& each) {
        return each && each->wanted && each->wanted->left_trace;
    });
    asked.clear();
    if (busy && co_await proceed(*busy, step::wait) != step::granted)
        co_return busy;
    if (core_->can.immediate && lets_others_run(*core_, members_.size()))
        co_await asio::post(asio::deferred);
    co_return nullptr;
}

asio::awaitable<void> gathering::await_answer(record& asked)
{
    parked place;
    place.ends_when_closed = true;
    std::uint32_t seen = 0;
    while (is_unanswered(*core_, asked, schedule_, seen)) {
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await core_->park(asked, place, seen);
    }
}

/// True if it is granted. Else it waits for its turn.
asio::awaitable<bool> gathering::attempt(candidate_ptr& one, const group_member& member)
{
    if (!one->wanted->attempting.was_sent()) {
        const auto now = lease_clock::now();
        one->wanted->attempting.counts(now >= schedule_.next_at());
        if (const step at_once = grant_at_once(*core_, one->wanted, now); at_once != step::again) {
            if (at_once == step::yield)
                co_await asio::post(asio::deferred);
            co_return true;
        }
    }
    // Who waits for its turn holds nothing, and would have to begin with what this may hold already: it is passed, lest
    // each of many stand in the way of the one that could go on.
    const bool passes = !locks_.empty() && pass_those_without_leave(*core_, *one->wanted);
    if (co_await attempt_with_leave(*one))
        co_return true;
    if (!passes || one->wanted->outcome().error)
        co_return false;
    // In vain: it waits behind them.
    answer_took_ = one->wanted->attempting.answer_took();
    one = make_candidate(member);
    co_return co_await attempt_with_leave(*one);
}

asio::awaitable<bool> gathering::attempt_with_leave(candidate& one)
{
    one.wanted->attempting.has_leave(true);
    const step reached = co_await proceed(one, step::wait);
    one.wanted->attempting.has_leave(false);
    co_return reached == step::granted;
}

asio::awaitable<step> gathering::proceed(candidate& one, step until)
{
    parked place;
    place.ends_when_closed = true;
    for (;;) {
        std::uint32_t seen = 0;
        const step next = next_step(*core_, one.wanted, schedule_, std::nullopt, seen);
        if (next == step::granted || next == step::turn || next == until)
            co_return next;
        if (next == step::again)
            continue;
        if (next == step::yield)
            seen = waitable::outdated;
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await core_->park(*one.wanted, place, seen);
    }
}

void gathering::note_failure(const candidate& busy)
{
    ++rounds_;
    answer_took_ = busy.wanted->attempting.answer_took();
    looks_ = busy.wanted->attempting.looks();
    {
        // Another thread's release may be handing over to it, and be told that this has failed.
        const std::lock_guard guard(core_->mutex);
        last_error_ = busy.wanted->where() == phase::acquiring ? busy.wanted->outcome().error : nullptr;
    }
    // What is waited for at the first key, nothing was held for.
    const auto held = locks_.size() + (std::exchange(kept_others_out_, false) ? 1 : 0);
    if (!last_error_ && held > 0) {
        const auto longest = std::max(schedule_.delay(), longest_of_the_impatient);
        collisions_.lost(round_began_, lease_clock::now(), held + 1, longest);
    }
}

asio::awaitable<gathering::candidate_ptr> gathering::await_turn(candidate_ptr busy)
{
    // The first key may be taken as soon as it is free. It may be asked for more than once until then.
    const auto came = co_await proceed(*busy, step::turn);
    looks_ = busy->wanted->attempting.looks();
    if (came == step::granted)
        co_return busy;
    if (const auto until = std::min(collisions_.resume_at(), schedule_.deadline()); lease_clock::now() < until) {
        const auto wanted = busy->wanted;
        busy.reset();
        co_await pause(core_, *wanted, until);
        co_return nullptr;
    }
    co_return busy;
}

/// A backend that keeps a queue may have granted it to this claim by now: it is given back, until its turn in the
/// order.
gathering::candidate_ptr gathering::in_order(candidate_ptr waited)
{
    auto fresh = make_candidate(*std::ranges::find(members_, waited->wanted->key(), &group_member::key));
    {
        const std::lock_guard guard(core_->mutex);
        if (waited->wanted->where() != phase::acquiring || !waited->wanted->attempting.was_told())
            return waited;
        core_->queues.change_places(*waited->wanted, *fresh->wanted);
    }
    return fresh;
}

/// As a grant that arrives too late.
asio::awaitable<void> gathering::start_again_after_loss()
{
    ++rounds_;
    looks_ = 0;
    last_error_ =
        make_failure(errc::unavailable, "a lease ended before the last of several locks was granted; use a longer ttl");
    const auto failed = prepare(members_.front());
    failed->attempts_made = rounds_;
    failed->outcome().error = last_error_;
    const last_answer last{.heard = true, .error = last_error_};
    if (!schedule_.failed(lease_clock::now()))
        throw_retries_ended(*core_, *failed, schedule_, last);
    co_await pause(core_, *failed, std::min(schedule_.next_at(), schedule_.deadline()));
    if (lease_clock::now() >= schedule_.deadline())
        throw_retries_ended(*core_, *failed, schedule_, last);
}

} // namespace

asio::awaitable<lock_group> acquire_all(std::shared_ptr<core> self, group_members keys, acquire_options options)
{
    gathering all(self, in_canonical_order(*self, std::move(keys.all()), options.mode), options);
    co_return co_await all.run();
}

} // namespace colock::detail::verbs
