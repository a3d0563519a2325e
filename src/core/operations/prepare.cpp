// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operations.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"

namespace colock::detail::operations {

using namespace std::chrono_literals;

namespace {

/// Checks the options of an acquire. Options that are not set come from the locker's options, which were checked when
/// the locker was made.
std::unique_ptr<const failure> check(const core& self, std::string_view key, const acquire_options& options)
{
    auto refused = check_key(key, self.limits);
    if (!refused && options.ttl)
        refused = check_ttl(*options.ttl, self.limits, self.can, self.backend->max_clock_lead(*options.ttl));
    if (!refused && (options.mode != lock_mode::exclusive || options.max_holders != 0))
        refused = check_mode(options.mode, options.max_holders, self.can, self.backend->name());
    if (!refused && !options.owner.empty())
        refused = check_label("owner", options.owner);
    if (!refused && !options.comment.empty())
        refused = check_label("comment", options.comment);
    if (!refused && !options.host.empty())
        refused = check_label("host", options.host);
    if (!refused && options.retry)
        refused = check_retry(*options.retry);
    if (!refused && options.max_hold)
        refused = check_max_hold(*options.max_hold, self.limits);
    return refused;
}

} // namespace

record::ptr prepare(const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options, renewal by_default,
    bool queues, std::string_view group)
{
    const auto ttl = options.ttl.value_or(self->options.ttl);
    const auto max_hold = options.max_hold ? options.max_hold : self->options.max_hold;
    auto refused = check(*self, key, options);
    if (!refused && self->margins.any())
        refused = check_margins(ttl, self->backend->max_clock_lead(ttl), self->options, by_default);
    auto owner = self->default_owner;
    if (!options.owner.empty() || !options.comment.empty() || !options.host.empty() || !group.empty()) {
        auto special = std::make_shared<owner_data>(*owner);
        if (!options.owner.empty())
            special->owner = std::move(options.owner);
        if (!options.host.empty())
            special->host = std::move(options.host);
        special->comment = std::move(options.comment);
        special->group = group;
        owner = std::move(special);
    }
    record::ptr made(new record(self, {.key = std::move(key),
                                          .mode = options.mode,
                                          .max_holders = options.max_holders,
                                          .ttl = ttl,
                                          .queues = queues,
                                          .owner = std::move(owner)}));
    made->refused = std::move(refused);
    if (options.retry)
        made->own_policy = std::make_unique<const retry_policy>(std::move(*options.retry));
    made->plan.set_options(
        options.renewal.value_or(by_default) == renewal::automatic && ttl > 0ms, max_hold.value_or(0ms));
    return made;
}

} // namespace colock::detail::operations
