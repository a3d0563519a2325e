// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/error.hpp>

#include "util/text_escaping.hpp"

#include <string_view>

namespace colock::inline v0 {

namespace {

/// Returns the cause and the remedy. Empty for a number that is no code of colock.
std::string explain(errc value)
{
    switch (value) {
    case errc::retry_exhausted:
        return "the lock stayed busy until the retry policy ended; allow more time or attempts, or treat it as busy";
    case errc::not_held:
        return "the lock is not held by this handle any more: released, expired or taken; acquire it again, with a "
               "longer ttl if the work outlasts it";
    case errc::lost:
        return "the lease ended while its work was still running; check what the work has done, and use the fence to "
               "refuse late writes";
    case errc::outcome_unknown:
        return "the request was sent but not answered, so it may have taken effect; colock settles it in the "
               "background, try again";
    case errc::unavailable:
        return "the backend cannot be reached or refuses work for now, and nothing was changed; check the backend, try "
               "again";
    case errc::invalid_key:
        return "the key cannot be used; give one of 1 to 512 bytes without a NUL";
    case errc::invalid_ttl:
        return "the ttl is out of range; give one that the backend resolves and that is at most ten years";
    case errc::invalid_retry:
        return "the retry policy contradicts itself; change the setting that the exception names, see with_diagnostics "
               "for async_ functions";
    case errc::invalid_options:
        return "the options contradict each other, or an empty lock was used; change what the exception names, see "
               "with_diagnostics for async_ functions";
    case errc::unsupported:
        return "the backend cannot do this; use another backend or other options";
    case errc::access_denied:
        return "the backend refused our credentials or rights; correct them, or grant the rights that the backend's "
               "documentation lists";
    case errc::misconfigured_backend:
        return "the backend is set up in a way in which locks cannot work; change what the exception and a warning of "
               "the observer name, see with_diagnostics for async_ functions";
    case errc::shutting_down:
        return "the locker is shutting down or its execution context is gone; nothing is held, use a new locker";
    }
    return {};
}

class category final : public boost::system::error_category
{
public:
    [[nodiscard]] const char* name() const noexcept override { return "colock"; }

    [[nodiscard]] std::string message(int value) const override
    {
        const auto code = static_cast<errc>(value);
        const auto text = explain(code);
        if (text.empty())
            return "unknown error of colock " + std::to_string(value) + "; use a value of colock::errc";
        return std::string(to_string(code)) + ": " + text;
    }

    [[nodiscard]] boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        return {value, *this};
    }
};

/// Whether the message of the code adds nothing to the detail. For refused input, the detail says everything. Otherwise
/// the detail is sufficient if it names a remedy after a semicolon, as the messages do.
bool detail_says_all(const error_code& code, std::string_view detail)
{
    const bool refused = code == errc::invalid_key || code == errc::invalid_ttl || code == errc::invalid_retry ||
                         code == errc::invalid_options;
    return !detail.empty() && (refused || detail.find("; ") != detail.npos);
}

/// Describes how often, and for how long, the backend was asked. The policy does not count a request that follows a
/// wake-up. It does count attempts that were due while another caller of the locker was first.
std::string effort_of(const error_context& context)
{
    const auto number_of = [](std::size_t count, const std::string& noun) {
        return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
    };
    const bool differs = context.counted_attempts > 0 && context.counted_attempts != context.attempts;
    if (context.attempts == 0 && !differs)
        return {};
    const auto requests = differs ? number_of(context.attempts, "request") + ", " +
                                        number_of(context.counted_attempts, "attempt") + " counted by the retry policy"
                                  : number_of(context.attempts, "attempt");
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(context.elapsed);
    return " (" + requests + ", " + std::to_string(elapsed.count()) + " ms)";
}

std::string describe(const error_code& code, const error_context& context)
{
    std::string text = context.backend.empty() ? "colock" : "colock " + context.backend;
    if (!context.key.empty())
        text += " " + detail::quoted(context.key);
    if (!context.detail.empty())
        text += ": " + detail::printable(context.detail);
    text += effort_of(context);
    if (context.cause && context.detail.find(context.cause.message()) == std::string::npos)
        text += " (cause: " + detail::printable(context.cause.message()) + ")";
    const bool is_ours = code.category() == colock_category();
    const auto value = static_cast<errc>(code.value());
    if (!detail_says_all(code, context.detail))
        text += ": " + (is_ours ? explain(value) : code.message());
    return text + " [" + code.to_string() + (is_ours ? std::string(" ") + to_string(value) : "") + "]";
}

} // namespace

const char* to_string(errc value) noexcept
{
    switch (value) {
    case errc::retry_exhausted:
        return "retry_exhausted";
    case errc::not_held:
        return "not_held";
    case errc::lost:
        return "lost";
    case errc::outcome_unknown:
        return "outcome_unknown";
    case errc::unavailable:
        return "unavailable";
    case errc::invalid_key:
        return "invalid_key";
    case errc::invalid_ttl:
        return "invalid_ttl";
    case errc::invalid_retry:
        return "invalid_retry";
    case errc::invalid_options:
        return "invalid_options";
    case errc::unsupported:
        return "unsupported";
    case errc::access_denied:
        return "access_denied";
    case errc::misconfigured_backend:
        return "misconfigured_backend";
    case errc::shutting_down:
        return "shutting_down";
    }
    return "unknown";
}

const boost::system::error_category& colock_category() noexcept
{
    static const category instance;
    return instance;
}

struct error::description
{
    error_context context;
    std::string text;
};

error::error(error_code code, error_context context) : system_error(code)
{
    auto text = describe(code, context);
    description_ = std::make_shared<const description>(std::move(context), std::move(text));
}

const char* error::what() const noexcept
{
    return description_->text.c_str();
}

const error_context& error::context() const noexcept
{
    return description_->context;
}

bool is_shutting_down(const error& failure) noexcept
{
    if (failure.code() == errc::shutting_down)
        return true;
    const auto* lost = dynamic_cast<const lost_error*>(&failure);
    return lost && lost->reason() == lost_reason::shutting_down;
}

bool is_shutting_down(const std::exception_ptr& failure) noexcept
{
    if (!failure)
        return false;
    try {
        std::rethrow_exception(failure);
    } catch (const error& found) {
        return is_shutting_down(found);
    } catch (const boost::system::system_error& found) {
        return found.code() == errc::shutting_down;
    } catch (...) {
        return false;
    }
}

} // namespace colock::inline v0
