// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/scripted_state.hpp"

namespace colock::testing {

const char* to_string(operation what) noexcept
{
    static constexpr std::array<const char*, operation_count> names{"create", "release", "abandon", "extend",
        "is_valid", "wait", "hand_over", "inspect", "break_key", "list", "purge", "create_all", "group",
        "export_ticket", "adopt", "close"};
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
    always(what, [how = std::move(how)] { return how; });
}

void scripted_adapter::always(operation what, std::function<step()> make)
{
    const std::lock_guard guard(state_->mutex);
    state_->repeated[index_of(what)] = std::move(make);
}

void scripted_adapter::reset()
{
    const std::lock_guard guard(state_->mutex);
    state_->queued = {};
    state_->repeated = {};
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

std::size_t scripted_adapter::unwanted_count() const
{
    const std::lock_guard guard(state_->mutex);
    return static_cast<std::size_t>(std::count_if(state_->held.begin(), state_->held.end(),
        [](const state::request& kept) { return !kept.claims.empty() && kept.claims.front()->cancelled(); }));
}

bool scripted_adapter::deliver()
{
    const auto request = state_->take_held();
    if (request)
        request->deliver(*this);
    return request.has_value();
}

bool scripted_adapter::discard()
{
    const auto request = state_->take_held();
    if (request)
        request->discard(*this);
    return request.has_value();
}

void scripted_adapter::trust_abandon(bool trust)
{
    const std::lock_guard guard(state_->mutex);
    state_->trust_abandon = trust;
}

void scripted_adapter::set_capabilities(colock::capabilities given)
{
    const std::lock_guard guard(state_->mutex);
    state_->given_capabilities = given;
}

void scripted_adapter::open_session(lease_clock::time_point until)
{
    const std::lock_guard guard(state_->mutex);
    state_->session = std::make_shared<session_lease>(until);
}

bool scripted_adapter::extend_session(lease_clock::time_point until)
{
    return state_->current_session()->extend(until);
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

adapter_traits scripted_adapter::traits() const noexcept
{
    auto result = backend_->traits();
    result.capabilities.immediate = result.capabilities.immediate && timing_ == timing::immediate;
    const std::lock_guard guard(state_->mutex);
    result.capabilities = state_->given_capabilities.value_or(result.capabilities);
    result.limits = state_->given_limits.value_or(result.limits);
    return result;
}

std::chrono::milliseconds scripted_adapter::max_clock_lead(std::chrono::milliseconds ttl) const noexcept
{
    const auto given = state_->given_clock_lead.load();
    return given < 0 ? backend_->max_clock_lead(ttl) : std::chrono::milliseconds(given);
}

void scripted_adapter::set_max_clock_lead(std::chrono::milliseconds given)
{
    state_->given_clock_lead = given.count();
}

void scripted_adapter::set_limits(adapter_limits given)
{
    const std::lock_guard guard(state_->mutex);
    state_->given_limits = given;
}

} // namespace colock::testing
