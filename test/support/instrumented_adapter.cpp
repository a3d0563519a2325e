// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/instrumented_adapter.hpp"

#include <algorithm>
#include <utility>

namespace colock::testing {

instrumented_adapter::instrumented_adapter(std::shared_ptr<adapter> backend, timing completions)
    : scripted_adapter(backend, backend->executor(), completions)
{
}

instrumented_adapter::instrumented_adapter(
    std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing completions)
    : scripted_adapter(std::move(backend), std::move(executor), completions)
{
}

std::vector<instrumented_adapter::call> instrumented_adapter::calls() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->calls;
}

void instrumented_adapter::forget_calls()
{
    const std::lock_guard guard(state_->mutex);
    state_->calls.clear();
}

std::vector<std::string> instrumented_adapter::breaches() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->breaches;
}

std::size_t instrumented_adapter::unwanted_count() const
{
    const std::lock_guard guard(state_->mutex);
    return static_cast<std::size_t>(std::count_if(state_->held.begin(), state_->held.end(),
        [](const state::request& kept) { return !kept.claims.empty() && kept.claims.front()->cancelled(); }));
}

step instrumented_adapter::others_wait(step behavior)
{
    behavior.others_wait_ = true;
    return behavior;
}

void instrumented_adapter::trust_abandon(bool trust)
{
    const std::lock_guard guard(state_->mutex);
    state_->trust_abandon = trust;
}

void instrumented_adapter::set_capabilities(colock::capabilities given)
{
    const std::lock_guard guard(mutex_);
    given_capabilities_ = given;
}

void instrumented_adapter::set_limits(adapter_limits given)
{
    const std::lock_guard guard(mutex_);
    given_limits_ = given;
}

void instrumented_adapter::set_max_clock_lead(std::chrono::milliseconds given)
{
    given_clock_lead_ = given.count();
}

void instrumented_adapter::open_session(lease_clock::time_point until)
{
    const std::lock_guard guard(state_->mutex);
    state_->session = std::make_shared<session_lease>(until);
}

bool instrumented_adapter::extend_session(lease_clock::time_point until)
{
    return state_->current_session()->extend(until);
}

void instrumented_adapter::end_session()
{
    const auto ended = state_->current_session();
    {
        const std::lock_guard guard(state_->mutex);
        state_->session.reset();
    }
    ended->end();
}

adapter_traits instrumented_adapter::traits() const noexcept
{
    auto result = scripted_adapter::traits();
    const std::lock_guard guard(mutex_);
    result.capabilities = given_capabilities_.value_or(result.capabilities);
    result.limits = given_limits_.value_or(result.limits);
    return result;
}

std::chrono::milliseconds instrumented_adapter::max_clock_lead(std::chrono::milliseconds ttl) const noexcept
{
    const auto given = given_clock_lead_.load();
    return given < 0 ? scripted_adapter::max_clock_lead(ttl) : std::chrono::milliseconds(given);
}

void instrumented_adapter::cancel_close() noexcept
{
    ++cancelled_closes;
    scripted_adapter::cancel_close();
}

} // namespace colock::testing
