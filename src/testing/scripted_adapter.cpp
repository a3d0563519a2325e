// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "testing/scripted_state.hpp"

namespace colock::testing {

const char* to_string(operation kind) noexcept
{
    static constexpr std::array<const char*, operation_count> names{"create", "release", "abandon", "extend",
        "is_valid", "wait", "hand_over", "inspect", "break_key", "list", "purge", "create_all", "group",
        "export_ticket", "adopt", "close"};
    return names[index_of(kind)];
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

scripted_adapter::scripted_adapter(std::shared_ptr<adapter> backend, timing completions)
    : scripted_adapter(backend, backend->executor(), completions)
{
    contact().set_up();
}

scripted_adapter::scripted_adapter(std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing completions)
    : adapter(std::move(executor)), backend_(std::move(backend)), timing_(completions),
      state_(std::make_shared<state>())
{
    join_context(this->executor(), state_);
}

scripted_adapter::~scripted_adapter() = default;

std::shared_ptr<scripted_adapter> scripted_adapter::self()
{
    return std::static_pointer_cast<scripted_adapter>(shared_from_this());
}

void scripted_adapter::next(operation kind, step behavior)
{
    const std::lock_guard guard(state_->mutex);
    state_->queued[index_of(kind)].push_back(std::move(behavior));
}

void scripted_adapter::always(operation kind, step behavior)
{
    always(kind, [behavior = std::move(behavior)] { return behavior; });
}

void scripted_adapter::always(operation kind, std::function<step()> make_step)
{
    const std::lock_guard guard(state_->mutex);
    state_->repeated[index_of(kind)] = std::move(make_step);
}

void scripted_adapter::reset()
{
    const std::lock_guard guard(state_->mutex);
    state_->queued = {};
    state_->repeated = {};
}

std::size_t scripted_adapter::unused_count() const
{
    const std::lock_guard guard(state_->mutex);
    std::size_t steps = 0;
    for (const auto& queue : state_->queued)
        steps += queue.size();
    return steps;
}

void scripted_adapter::disconnect()
{
    {
        const std::lock_guard guard(state_->mutex);
        state_->is_disconnected = true;
    }
    contact().set_down(make_error_code(errc::unavailable));
}

void scripted_adapter::reconnect()
{
    {
        const std::lock_guard guard(state_->mutex);
        if (!std::exchange(state_->is_disconnected, false))
            return;
    }
    contact().set_up();
}

std::size_t scripted_adapter::count(operation kind) const
{
    const std::lock_guard guard(state_->mutex);
    return static_cast<std::size_t>(
        std::count_if(state_->calls.begin(), state_->calls.end(), [&](const call& each) { return each.what == kind; }));
}

std::size_t scripted_adapter::held_count() const
{
    const std::lock_guard guard(state_->mutex);
    return state_->held.size();
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

void scripted_adapter::join_session(const claim_ptr& granted)
{
    if (auto session = state_->current_session())
        granted->lease().tie(std::move(session));
}

adapter_traits scripted_adapter::traits() const noexcept
{
    auto result = backend_->traits();
    result.capabilities.immediate = result.capabilities.immediate && timing_ == timing::immediate;
    return result;
}

std::chrono::milliseconds scripted_adapter::max_clock_lead(std::chrono::milliseconds ttl) const noexcept
{
    return backend_->max_clock_lead(ttl);
}

void scripted_adapter::cancel_close() noexcept
{
    backend_->cancel_close();
}

} // namespace colock::testing
