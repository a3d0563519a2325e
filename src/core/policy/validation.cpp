// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/validation.hpp"

#include "core/policy/lease_plan.hpp"
#include "util/option_errors.hpp"

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t max_label = 256;
constexpr std::size_t max_purge_limit = 100'000;

std::unique_ptr<const failure> make_problem(errc code, std::string detail)
{
    return std::make_unique<const failure>(failure{code, {}, std::move(detail)});
}

} // namespace

std::unique_ptr<const failure> check_key(std::string_view key, const adapter_limits& limits)
{
    if (key.empty())
        return make_problem(errc::invalid_key, "the key is empty; acquire_global() is the one lock without a key");
    if (key.size() > limits.max_key) {
        return make_problem(errc::invalid_key, "the key has " + std::to_string(key.size()) + " bytes, the limit is " +
                                                   std::to_string(limits.max_key) +
                                                   "; shorten it, or use a hash of it");
    }
    if (const auto at = key.find('\0'); at != key.npos) {
        return make_problem(
            errc::invalid_key, "the key has a NUL at byte " + std::to_string(at) + "; leave it out, or encode the key");
    }
    return nullptr;
}

std::unique_ptr<const failure> check_ttl(std::chrono::milliseconds ttl, const adapter_limits& limits,
    const capabilities& can, std::chrono::milliseconds max_clock_lead)
{
    if (ttl < 0ms)
        return make_problem(errc::invalid_ttl, "the ttl is " + in_words(ttl) + "; give a positive one");
    if (ttl == 0ms) {
        return can.no_ttl ? nullptr
                          : make_problem(errc::unsupported,
                                "the backend has no locks without a ttl (0 ms); give a positive one");
    }
    if (ttl < limits.min_ttl || ttl > limits.max_ttl) {
        return make_problem(errc::invalid_ttl, "the ttl is " + in_words(ttl) + "; give one from " +
                                                   in_words(limits.min_ttl) + " to " + in_words(limits.max_ttl));
    }
    if (is_too_short(ttl, max_clock_lead)) {
        return make_problem(errc::invalid_ttl, "the ttl is " + in_words(ttl) +
                                                   ", and the backend's max_clock_lead is " + in_words(max_clock_lead) +
                                                   ", which shortens the lease; give at least " +
                                                   in_words(4 * max_clock_lead) + ", or set a smaller max_clock_lead");
    }
    return nullptr;
}

std::unique_ptr<const failure> check_retry(const retry_policy& policy)
{
    auto problem = policy.problem();
    return problem.empty() ? nullptr : make_problem(errc::invalid_retry, std::move(problem));
}

std::unique_ptr<const failure> check_mode(
    lock_mode mode, std::size_t max_holders, const capabilities& can, std::string_view backend)
{
    if (mode != lock_mode::exclusive && mode != lock_mode::shared) {
        return make_problem(errc::invalid_options, "the mode is " + std::to_string(static_cast<unsigned>(mode)) +
                                                       "; give lock_mode::exclusive or lock_mode::shared");
    }
    if (mode == lock_mode::exclusive && max_holders != 0) {
        return make_problem(
            errc::invalid_options, "max_holders is " + std::to_string(max_holders) +
                                       " with an exclusive lock; ask for lock_mode::shared, or leave it 0");
    }
    if (mode == lock_mode::shared && !can.shared)
        return make_problem(errc::unsupported, "this " + std::string(backend) +
                                                   " adapter has no shared locks, see adapter::capabilities; ask for "
                                                   "an exclusive one");
    if (max_holders != 0 && !can.semaphore)
        return make_problem(errc::unsupported, "this " + std::string(backend) +
                                                   " adapter has no semaphores, see adapter::capabilities; leave "
                                                   "max_holders 0");
    return nullptr;
}

std::unique_ptr<const failure> check_label(std::string_view name, std::string_view value)
{
    if (value.size() > max_label) {
        return make_problem(errc::invalid_options, std::string(name) + " has " + std::to_string(value.size()) +
                                                       " bytes, the limit is " + std::to_string(max_label) +
                                                       "; shorten it");
    }
    if (value.find('\0') != value.npos)
        return make_problem(errc::invalid_options, std::string(name) + " contains a NUL; leave it out");
    return nullptr;
}

std::unique_ptr<const failure> check_max_hold(
    std::chrono::milliseconds max_hold, std::chrono::milliseconds ttl, const adapter_limits& limits)
{
    if (ttl == 0ms) {
        return make_problem(errc::invalid_options, "max_hold is " + in_words(max_hold) +
                                                       ", and the lock has no ttl, so nothing would end it; set a ttl, "
                                                       "or leave max_hold unset");
    }
    if (max_hold >= limits.min_ttl && max_hold <= limits.max_ttl)
        return nullptr;
    return make_problem(errc::invalid_options, "max_hold is " + in_words(max_hold) + "; give one from " +
                                                   in_words(limits.min_ttl) + " to " + in_words(limits.max_ttl));
}

std::unique_ptr<const failure> check_margins(std::chrono::milliseconds ttl, std::chrono::milliseconds max_clock_lead,
    const locker_options& options, renewal default_renewal)
{
    if (ttl == 0ms || (!options.minimum_validity && !options.stop_margin))
        return nullptr;
    const auto max_validity = std::chrono::floor<std::chrono::milliseconds>(
        local_expiry({lease_clock::time_point{}, ttl, max_clock_lead}).time_since_epoch());
    const auto margin_problem = [&](std::string_view name, std::chrono::milliseconds value, std::string_view effect) {
        return make_problem(errc::invalid_options, std::string(name) + " is " + in_words(value) + ", and a lease of " +
                                                       in_words(ttl) + " is valid for " + in_words(max_validity) +
                                                       ": " + std::string(effect) + "; set less, or give a longer ttl");
    };
    if (options.minimum_validity && *options.minimum_validity >= max_validity)
        return margin_problem("minimum_validity", *options.minimum_validity, "no grant would ever be accepted");
    // Only with_lock stops a body.
    if (default_renewal == renewal::automatic && options.stop_margin && *options.stop_margin >= max_validity)
        return margin_problem("stop_margin", *options.stop_margin, "a body would be cancelled as soon as it began");
    return nullptr;
}

void check_locker_options(const locker_options& options, const adapter& backend)
{
    const auto traits = backend.traits();
    const auto refuse = [&](const std::unique_ptr<const failure>& problem) {
        if (!problem)
            return;
        throw validation_error(problem->code, {.backend = std::string(traits.name), .detail = problem->detail});
    };
    const auto in_range = [&](std::string_view name, std::chrono::milliseconds value, std::chrono::milliseconds min,
                              std::chrono::milliseconds max) { check_range(traits.name, name, value, min, max); };
    const auto max_clock_lead = backend.max_clock_lead(options.ttl);
    refuse(check_ttl(options.ttl, traits.limits, traits.capabilities, max_clock_lead));
    refuse(check_retry(options.retry));
    refuse(check_label("owner", options.owner));
    refuse(check_label("host", options.host));
    in_range("operation_timeout", options.operation_timeout, 10ms, std::chrono::hours(1));
    if (options.minimum_validity)
        in_range("minimum_validity", *options.minimum_validity, 0ms, traits.limits.max_ttl);
    if (options.stop_margin)
        in_range("stop_margin", *options.stop_margin, 0ms, traits.limits.max_ttl);
    refuse(check_margins(options.ttl, max_clock_lead, options, renewal::automatic));
    if (options.max_hold)
        refuse(check_max_hold(*options.max_hold, options.ttl, traits.limits));
    if (options.debug && !options.observer)
        refuse(make_problem(errc::invalid_options,
            "debug is set without an observer, which would receive its reports; set observer, too"));
    if (options.purge) {
        in_range("purge.interval", options.purge->interval, 100ms, std::chrono::hours(24 * 30));
        if (options.purge->limit < 1 || options.purge->limit > max_purge_limit) {
            refuse(make_problem(errc::invalid_options, "purge.limit is " + std::to_string(options.purge->limit) +
                                                           "; give one from 1 to " + std::to_string(max_purge_limit)));
        }
        if (!traits.capabilities.list) {
            refuse(make_problem(errc::unsupported,
                std::string(traits.name) + " cannot list its locks, so it cannot purge them; leave purge unset"));
        }
    }
}

std::unique_ptr<const failure> check_acquire_options(std::string_view key, const acquire_options& options,
    std::chrono::milliseconds default_ttl, const adapter& backend, const adapter_limits& limits,
    const capabilities& can)
{
    auto refused = check_key(key, limits);
    if (!refused && options.ttl)
        refused = check_ttl(*options.ttl, limits, can, backend.max_clock_lead(*options.ttl));
    if (!refused && (options.mode != lock_mode::exclusive || options.max_holders != 0))
        refused = check_mode(options.mode, options.max_holders, can, backend.traits().name);
    if (!refused && !options.owner.empty())
        refused = check_label("owner", options.owner);
    if (!refused && !options.comment.empty())
        refused = check_label("comment", options.comment);
    if (!refused && !options.host.empty())
        refused = check_label("host", options.host);
    if (!refused && !options.retry.empty())
        refused = check_retry(options.retry);
    if (!refused && options.max_hold)
        refused = check_max_hold(*options.max_hold, options.ttl.value_or(default_ttl), limits);
    return refused;
}

} // namespace colock::inline v0::detail
