// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/error.hpp>

namespace colock {

namespace {

class category final : public boost::system::error_category
{
public:
    [[nodiscard]] const char* name() const noexcept override { return "colock"; }

    [[nodiscard]] std::string message(int value) const override
    {
        switch (static_cast<errc>(value)) {
        case errc::retry_exhausted:
            return "the lock stayed busy until the retry policy ended; allow more time or attempts, or treat it as "
                   "busy";
        case errc::not_held:
            return "the lock is not held by this handle any more: released, expired or taken; acquire it again, with a "
                   "longer ttl if the work outlasts it";
        case errc::lost:
            return "the lease ended while its work was still running; check what the work has done, and use the fence "
                   "to refuse late writes";
        case errc::outcome_unknown:
            return "the request was sent but not answered, so it may have taken effect; colock settles it in the "
                   "background, try again";
        case errc::unavailable:
            return "the backend cannot be reached or refuses work for now, and nothing was changed; check the backend, "
                   "try again";
        case errc::invalid_key:
            return "the key cannot be used; give one of 1 to 512 bytes without a NUL";
        case errc::invalid_ttl:
            return "the ttl is out of range; give one that the backend resolves and that is at most ten years";
        case errc::invalid_retry:
            return "the retry policy contradicts itself; see the detail for the setting to change";
        case errc::invalid_options:
            return "the options contradict each other, or an empty lock was used; see the detail for what to change";
        case errc::unsupported:
            return "the backend cannot do this; use another backend or other options";
        case errc::access_denied:
            return "the backend refused our credentials or rights; correct them, or grant the rights that the "
                   "backend's "
                   "documentation lists";
        case errc::misconfigured_backend:
            return "the backend is set up in a way in which locks cannot work; see the detail for what to change there";
        case errc::shutting_down:
            return "the locker is shutting down or its execution context is gone; nothing is held, use a new locker";
        }
        return "unknown error of colock " + std::to_string(value) + "; use a value of colock::errc";
    }

    [[nodiscard]] boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        return {value, *this};
    }
};

std::string describe(const error_context& context)
{
    std::string text = context.backend.empty() ? "colock" : "colock " + context.backend;
    if (!context.key.empty())
        text += " \"" + context.key + "\"";
    if (!context.detail.empty())
        text += ": " + context.detail;
    if (context.attempts > 0) {
        const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(context.elapsed);
        text += " (" + std::to_string(context.attempts) + (context.attempts == 1 ? " attempt, " : " attempts, ") +
                std::to_string(elapsed.count()) + " ms)";
    }
    if (context.cause)
        text += " (cause: " + context.cause.message() + ")";
    return text;
}

} // namespace

const boost::system::error_category& colock_category() noexcept
{
    static const category instance;
    return instance;
}

error::error(error_code code, error_context context)
    : system_error(code, describe(context)), context_(std::make_shared<const error_context>(std::move(context)))
{
}

} // namespace colock
