// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/scripted_adapter.hpp"

#include <colock/context_member.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

namespace colock::testing {

namespace {

constexpr std::size_t index_of(operation what)
{
    return static_cast<std::size_t>(what);
}

template <class Outcome>
Outcome failed(const failure_ptr& error)
{
    Outcome outcome;
    if constexpr (requires { outcome.status; })
        outcome.status = decltype(outcome.status)::failed;
    if constexpr (requires { outcome.error; })
        outcome.error = error;
    return outcome;
}

template <>
hand_over_outcome failed<hand_over_outcome>(const failure_ptr& error)
{
    return {failed<release_outcome>(error), failed<create_outcome>(error)};
}

template <class Outcome>
Outcome negative()
{
    Outcome outcome;
    if constexpr (requires { decltype(outcome.status)::not_held; })
        outcome.status = decltype(outcome.status)::not_held;
    return outcome;
}

failure_ptr unknown(const char* why)
{
    return make_failure(errc::outcome_unknown, why);
}

} // namespace

const char* to_string(operation what) noexcept
{
    static constexpr std::array<const char*, operation_count> names{"create", "release", "abandon", "extend",
        "is_valid", "wait", "hand_over", "inspect", "break_key", "list", "purge", "close"};
    return names[index_of(what)];
}

step step::fail(errc code, std::string detail, error_code cause)
{
    step failing(action::fail);
    failing.error_ = make_failure(code, std::move(detail), cause);
    return failing;
}

step step::busy(lease_clock::duration retry_after, std::string holder)
{
    step answering(action::busy);
    answering.retry_after_ = retry_after;
    answering.holder_ = std::move(holder);
    return answering;
}

step step::others_wait() &&
{
    others_wait_ = true;
    return std::move(*this);
}

step step::delay(lease_clock::duration span) &&
{
    delay_ = span;
    return std::move(*this);
}

step step::before(std::function<void()> hook) &&
{
    before_ = std::move(hook);
    return std::move(*this);
}

step step::after(std::function<void()> hook) &&
{
    after_ = std::move(hook);
    return std::move(*this);
}

/// Lets go of what is held back when its context dies: the completions may own what must not outlive it.
struct scripted_adapter::state : context_member
{
    struct request
    {
        operation what;
        claim_ptr claim;
        claim_ptr second_claim;
        std::function<void(scripted_adapter&)> deliver;
        std::function<void(scripted_adapter&)> discard;

        [[nodiscard]] bool of(const colock::claim& other) const noexcept
        {
            return claim.get() == &other || second_claim.get() == &other;
        }
    };

    void context_shutdown() noexcept override
    {
        std::deque<request> dropped;
        std::map<const colock::claim*, claim_ptr> waits;
        const std::lock_guard guard(mutex);
        dropped.swap(held);
        waits.swap(waiting);
        under_way.clear();
    }

    /// The mutex is held.
    void enter(const colock::claim& subject, operation what)
    {
        const auto breach = [&](const std::string& why) {
            breaches.push_back(subject.key() + ": " + to_string(what) + " started " + why);
        };
        if (const auto other = under_way.find(&subject); other != under_way.end())
            breach(std::string("while ") + to_string(other->second) + " is under way");
        if (waiting.contains(&subject))
            breach("before its wait had ended or was cancelled");
        if (what != operation::wait)
            under_way[&subject] = what;
    }
    void leave(std::initializer_list<const colock::claim*> done)
    {
        const std::lock_guard guard(mutex);
        for (const auto* subject : done)
            under_way.erase(subject);
    }
    void end_wait(const colock::claim* subject)
    {
        claim_ptr last;
        const std::lock_guard guard(mutex);
        if (const auto found = waiting.find(subject); found != waiting.end()) {
            last = std::move(found->second);
            waiting.erase(found);
        }
    }

    mutable std::mutex mutex;
    std::array<std::deque<step>, operation_count> queued;
    std::array<std::optional<step>, operation_count> standing;
    std::vector<call> calls;
    std::deque<request> held;
    bool trust_abandon = false;
    std::optional<colock::capabilities> pretended;
    std::optional<adapter_limits> pretended_limits;
    std::map<const colock::claim*, operation> under_way;
    std::map<const colock::claim*, claim_ptr> waiting;
    std::vector<std::string> breaches;
    std::shared_ptr<session_bound> session;

    [[nodiscard]] std::shared_ptr<session_bound> current_session() const
    {
        const std::lock_guard guard(mutex);
        return session;
    }
};

/// One operation between the core and the backend.
template <class Outcome>
struct scripted_adapter::trip
{
    operation what;
    step how;
    /// Whose request it is, for the contract of abandon; null where there is none.
    claim_ptr claim;
    claim_ptr second_claim;
    std::function<void(adapter&, completion<Outcome>)> send;
    completion<Outcome> done;
    /// Whose one operation this is.
    std::shared_ptr<state> where;
    claim_ptr occupies;
    claim_ptr occupies_too;

    void answer(Outcome outcome)
    {
        if (how.after_)
            how.after_();
        if (where)
            where->leave({occupies.get(), occupies_too.get()});
        if constexpr (std::is_same_v<Outcome, release_outcome>)
            outcome.others_wait = outcome.others_wait || how.others_wait_;
        else if constexpr (std::is_same_v<Outcome, hand_over_outcome>)
            outcome.released.others_wait = outcome.released.others_wait || how.others_wait_;
        done(std::move(outcome));
    }
};

scripted_adapter::scripted_adapter(std::shared_ptr<adapter> backend, timing when)
    : scripted_adapter(backend, backend->executor(), when)
{
}

scripted_adapter::scripted_adapter(std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing when)
    : adapter(std::move(executor)), backend_(std::move(backend)), timing_(when), state_(std::make_shared<state>())
{
    join_context(this->executor(), state_);
}

scripted_adapter::~scripted_adapter() = default;

std::shared_ptr<scripted_adapter> scripted_adapter::self()
{
    return std::static_pointer_cast<scripted_adapter>(shared_from_this());
}

void scripted_adapter::next(operation what, step how)
{
    const std::lock_guard guard(state_->mutex);
    state_->queued[index_of(what)].push_back(std::move(how));
}

void scripted_adapter::always(operation what, step how)
{
    const std::lock_guard guard(state_->mutex);
    state_->standing[index_of(what)] = std::move(how);
}

void scripted_adapter::reset()
{
    const std::lock_guard guard(state_->mutex);
    state_->queued = {};
    state_->standing = {};
}

std::size_t scripted_adapter::unused() const
{
    const std::lock_guard guard(state_->mutex);
    std::size_t steps = 0;
    for (const auto& queue : state_->queued)
        steps += queue.size();
    return steps;
}

std::vector<call> scripted_adapter::calls() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->calls;
}

std::size_t scripted_adapter::count(operation what) const
{
    const std::lock_guard guard(state_->mutex);
    return static_cast<std::size_t>(
        std::count_if(state_->calls.begin(), state_->calls.end(), [&](const call& made) { return made.what == what; }));
}

void scripted_adapter::forget_calls()
{
    const std::lock_guard guard(state_->mutex);
    state_->calls.clear();
}

std::vector<std::string> scripted_adapter::breaches() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->breaches;
}

std::size_t scripted_adapter::held() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->held.size();
}

std::size_t scripted_adapter::held_for_nobody() const
{
    const std::lock_guard guard(state_->mutex);
    return static_cast<std::size_t>(std::count_if(state_->held.begin(), state_->held.end(),
        [](const state::request& kept) { return kept.claim && kept.claim->cancelled(); }));
}

bool scripted_adapter::deliver()
{
    std::unique_lock guard(state_->mutex);
    if (state_->held.empty())
        return false;
    const auto request = std::move(state_->held.front());
    state_->held.pop_front();
    guard.unlock();
    request.deliver(*this);
    return true;
}

bool scripted_adapter::discard()
{
    std::unique_lock guard(state_->mutex);
    if (state_->held.empty())
        return false;
    const auto request = std::move(state_->held.front());
    state_->held.pop_front();
    guard.unlock();
    request.discard(*this);
    return true;
}

void scripted_adapter::trust_abandon(bool trust)
{
    const std::lock_guard guard(state_->mutex);
    state_->trust_abandon = trust;
}

void scripted_adapter::set_capabilities(colock::capabilities pretended)
{
    const std::lock_guard guard(state_->mutex);
    state_->pretended = pretended;
}

void scripted_adapter::open_session(lease_clock::time_point until)
{
    const std::lock_guard guard(state_->mutex);
    state_->session = std::make_shared<session_bound>(until);
}

bool scripted_adapter::raise_session(lease_clock::time_point until)
{
    return state_->current_session()->raise(until);
}

void scripted_adapter::risk_session()
{
    state_->current_session()->at_risk();
}

void scripted_adapter::end_session()
{
    const auto ended = state_->current_session();
    {
        const std::lock_guard guard(state_->mutex);
        state_->session.reset();
    }
    ended->end();
}

void scripted_adapter::join_session(const claim_ptr& granted)
{
    if (auto session = state_->current_session())
        granted->lease().tie(std::move(session));
}

std::string_view scripted_adapter::name() const noexcept
{
    return backend_->name();
}

capabilities scripted_adapter::capabilities() const noexcept
{
    const std::lock_guard guard(state_->mutex);
    auto able = state_->pretended.value_or(backend_->capabilities());
    if (!state_->pretended)
        able.immediate = able.immediate && timing_ == timing::immediate;
    return able;
}

adapter_limits scripted_adapter::limits() const noexcept
{
    const std::lock_guard guard(state_->mutex);
    return state_->pretended_limits.value_or(backend_->limits());
}

void scripted_adapter::set_limits(adapter_limits pretended)
{
    const std::lock_guard guard(state_->mutex);
    state_->pretended_limits = pretended;
}

step scripted_adapter::begin(operation what, const claim_ptr& claim, std::chrono::milliseconds ttl)
{
    {
        const std::lock_guard guard(state_->mutex);
        state_->enter(*claim, what);
    }
    return begin({what, claim->key(), claim->token(), ttl, claim->sent(), claim->tainted()});
}

step scripted_adapter::begin(call started)
{
    const auto index = index_of(started.what);
    const std::lock_guard guard(state_->mutex);
    state_->calls.push_back(std::move(started));
    auto& queue = state_->queued[index];
    if (queue.empty())
        return state_->standing[index].value_or(step::pass());
    step taken = std::move(queue.front());
    queue.pop_front();
    return taken;
}

template <class Outcome>
void scripted_adapter::run(trip<Outcome> started)
{
    switch (started.how.what_) {
    case step::action::hold:
        return hold_back(std::move(started));
    case step::action::hold_unknown: {
        trip<Outcome> answered{started.what, step::lose_request(), nullptr, nullptr, {}, std::move(started.done),
            std::move(started.where), std::move(started.occupies), std::move(started.occupies_too)};
        started.where = nullptr;
        started.done = completion<Outcome>([](Outcome) {});
        hold_back(std::move(started));
        return travel(std::move(answered));
    }
    default:
        return travel(std::move(started));
    }
}

template <class Outcome>
void scripted_adapter::hold_back(trip<Outcome> kept)
{
    const auto request = std::make_shared<trip<Outcome>>(std::move(kept));
    const auto deliver = [request](scripted_adapter& by) {
        request->how.what_ = step::action::pass;
        by.travel(std::move(*request));
    };
    const auto discard = [request](scripted_adapter& by) {
        request->how.what_ = step::action::lose_request;
        by.travel(std::move(*request));
    };
    const std::lock_guard guard(state_->mutex);
    state_->held.push_back({request->what, request->claim, request->second_claim, deliver, discard});
}

template <class Outcome>
void scripted_adapter::travel(trip<Outcome> departing)
{
    const auto span = departing.how.delay_;
    if (span == span.zero() && timing_ == timing::immediate)
        return arrive(std::move(departing));
    const auto where = executor();
    if (!where)
        return;
    if (span == span.zero()) {
        asio::post(where, [self = self(), trip = std::move(departing)]() mutable { self->arrive(std::move(trip)); });
        return;
    }
    auto timer = std::make_unique<lease_timer>(where, span);
    auto& armed = *timer;
    armed.async_wait([self = self(), timer = std::move(timer), trip = std::move(departing)](
                         const error_code&) mutable { self->arrive(std::move(trip)); });
}

template <class Outcome>
void scripted_adapter::arrive(trip<Outcome> arrived)
{
    if (arrived.how.before_)
        arrived.how.before_();
    switch (arrived.how.what_) {
    case step::action::lose_request:
        return arrived.answer(failed<Outcome>(unknown("the request was lost")));
    case step::action::fail:
        return arrived.answer(failed<Outcome>(arrived.how.error_));
    case step::action::not_held:
        return arrived.answer(negative<Outcome>());
    case step::action::busy:
        if constexpr (std::is_same_v<Outcome, create_outcome>) {
            return arrived.answer(create_outcome::busy(arrived.how.retry_after_, arrived.how.holder_));
        } else if constexpr (std::is_same_v<Outcome, hand_over_outcome>) {
            auto given_back = arrived.claim;
            return backend_->start_release(
                std::move(given_back), [trip = std::move(arrived)](release_outcome released) mutable {
                    auto created = create_outcome::busy(trip.how.retry_after_, trip.how.holder_);
                    trip.answer({std::move(released), std::move(created)});
                });
        }
        break;
    default:
        break;
    }
    const bool lose_reply = arrived.how.what_ == step::action::lose_reply;
    const auto send = std::move(arrived.send);
    send(*backend_, [self = self(), lose_reply, trip = std::move(arrived)](Outcome outcome) mutable {
        if constexpr (std::is_same_v<Outcome, create_outcome>) {
            if (outcome.status == create_status::granted)
                self->join_session(trip.claim);
        } else if constexpr (std::is_same_v<Outcome, hand_over_outcome>) {
            if (outcome.created.status == create_status::granted)
                self->join_session(trip.second_claim);
        }
        trip.answer(lose_reply ? failed<Outcome>(unknown("the reply was lost")) : std::move(outcome));
    });
}

void scripted_adapter::start_create(claim_ptr claim, completion<create_outcome> done)
{
    auto how = begin(operation::create, claim, claim->ttl());
    const auto send = [claim](adapter& backend, completion<create_outcome> end) {
        backend.start_create(claim, std::move(end));
    };
    run<create_outcome>(
        {operation::create, std::move(how), claim, nullptr, send, std::move(done), state_, claim, nullptr});
}

void scripted_adapter::start_release(claim_ptr claim, completion<release_outcome> done)
{
    auto how = begin(operation::release, claim, claim->ttl());
    const auto send = [claim](adapter& backend, completion<release_outcome> end) {
        backend.start_release(claim, std::move(end));
    };
    run<release_outcome>(
        {operation::release, std::move(how), claim, nullptr, send, std::move(done), state_, claim, nullptr});
}

void scripted_adapter::start_abandon(claim_ptr claim, completion<release_outcome> done)
{
    auto how = begin(operation::abandon, claim, claim->ttl());
    const auto send = [claim, state = state_](adapter& backend, completion<release_outcome> end) {
        bool late = false;
        {
            const std::lock_guard guard(state->mutex);
            late = !state->trust_abandon && std::any_of(state->held.begin(), state->held.end(), [&](const auto& held) {
                return held.what != operation::wait && held.of(*claim);
            });
        }
        if (late)
            end({release_status::failed, make_failure(errc::unavailable, "an earlier request is still under way")});
        else
            backend.start_abandon(claim, std::move(end));
    };
    run<release_outcome>(
        {operation::abandon, std::move(how), claim, nullptr, send, std::move(done), state_, claim, nullptr});
}

void scripted_adapter::start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    auto how = begin(operation::extend, claim, ttl);
    const auto send = [claim, ttl](adapter& backend, completion<extend_outcome> end) {
        backend.start_extend(claim, ttl, std::move(end));
    };
    run<extend_outcome>(
        {operation::extend, std::move(how), claim, nullptr, send, std::move(done), state_, claim, nullptr});
}

void scripted_adapter::start_is_valid(claim_ptr claim, completion<valid_outcome> done)
{
    auto how = begin(operation::is_valid, claim, claim->ttl());
    const auto send = [claim](adapter& backend, completion<valid_outcome> end) {
        backend.start_is_valid(claim, std::move(end));
    };
    run<valid_outcome>(
        {operation::is_valid, std::move(how), claim, nullptr, send, std::move(done), state_, claim, nullptr});
}

void scripted_adapter::start_wait(claim_ptr claim, lease_clock::time_point until, completion<woken> done)
{
    auto how = begin(operation::wait, claim, claim->ttl());
    const auto send = [claim, until](adapter& backend, completion<woken> end) {
        backend.start_wait(claim, until, std::move(end));
    };
    {
        const std::lock_guard guard(state_->mutex);
        state_->waiting[claim.get()] = claim;
    }
    auto ended = [known = std::weak_ptr(state_), subject = claim.get(), end = std::move(done)](woken outcome) mutable {
        if (const auto left = known.lock())
            left->end_wait(subject);
        end(outcome);
    };
    if (how.what_ == step::action::hold) {
        return hold_back<woken>({operation::wait, std::move(how), std::move(claim), nullptr, send, std::move(ended),
            nullptr, nullptr, nullptr});
    }
    if (how.what_ == step::action::fail)
        return asio::post(executor(), [end = std::move(ended)]() mutable { end({}); });
    if (timing_ == timing::immediate)
        return send(*backend_, std::move(ended));
    // Weak: a wait may last as long as its backend keeps it.
    send(*backend_, [weak = std::weak_ptr(self()), end = std::move(ended)](woken outcome) mutable {
        const auto by = weak.lock();
        const auto where = by ? by->executor() : asio::any_io_executor();
        if (where)
            asio::post(where, [end = std::move(end), outcome]() mutable { end(outcome); });
    });
}

void scripted_adapter::cancel_wait(claim& claim) noexcept
{
    std::vector<state::request> dropped;
    state_->end_wait(&claim);
    {
        const std::lock_guard guard(state_->mutex);
        auto& held = state_->held;
        for (auto request = held.begin(); request != held.end();) {
            if (request->what == operation::wait && request->of(claim)) {
                dropped.push_back(std::move(*request));
                request = held.erase(request);
            } else {
                ++request;
            }
        }
    }
    backend_->cancel_wait(claim);
}

void scripted_adapter::start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    auto how = begin(operation::hand_over, held, held->ttl());
    {
        const std::lock_guard guard(state_->mutex);
        state_->enter(*next, operation::hand_over);
    }
    const auto send = [held, next](adapter& backend, completion<hand_over_outcome> end) {
        backend.start_hand_over(held, next, std::move(end));
    };
    run<hand_over_outcome>(
        {operation::hand_over, std::move(how), held, next, send, std::move(done), state_, held, next});
}

void scripted_adapter::start_inspect(std::string key, completion<list_outcome> done)
{
    auto how = begin({operation::inspect, key, {}, {}});
    const auto send = [key = std::move(key)](adapter& backend, completion<list_outcome> end) {
        backend.start_inspect(key, std::move(end));
    };
    run<list_outcome>(
        {operation::inspect, std::move(how), nullptr, nullptr, send, std::move(done), nullptr, nullptr, nullptr});
}

void scripted_adapter::start_break(std::string key, completion<list_outcome> done)
{
    auto how = begin({operation::break_key, key, {}, {}});
    const auto send = [key = std::move(key)](
                          adapter& backend, completion<list_outcome> end) { backend.start_break(key, std::move(end)); };
    run<list_outcome>(
        {operation::break_key, std::move(how), nullptr, nullptr, send, std::move(done), nullptr, nullptr, nullptr});
}

void scripted_adapter::start_list(filter which, std::string cursor, completion<list_outcome> done)
{
    auto how = begin({operation::list, which.key.value_or(""), {}, {}});
    const auto send = [which = std::move(which), cursor = std::move(cursor)](adapter& backend,
                          completion<list_outcome> end) { backend.start_list(which, cursor, std::move(end)); };
    run<list_outcome>(
        {operation::list, std::move(how), nullptr, nullptr, send, std::move(done), nullptr, nullptr, nullptr});
}

void scripted_adapter::start_purge(std::size_t limit, completion<list_outcome> done)
{
    auto how = begin({operation::purge, {}, {}, {}});
    const auto send = [limit](adapter& backend, completion<list_outcome> end) {
        backend.start_purge(limit, std::move(end));
    };
    run<list_outcome>(
        {operation::purge, std::move(how), nullptr, nullptr, send, std::move(done), nullptr, nullptr, nullptr});
}

void scripted_adapter::start_close(lease_clock::duration deadline, completion<closed> done)
{
    auto how = begin({operation::close, {}, {}, std::chrono::floor<std::chrono::milliseconds>(deadline)});
    const auto send = [deadline](
                          adapter& backend, completion<closed> end) { backend.start_close(deadline, std::move(end)); };
    run<closed>({operation::close, std::move(how), nullptr, nullptr, send, std::move(done), nullptr, nullptr, nullptr});
}

} // namespace colock::testing
