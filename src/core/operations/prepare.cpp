// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operations.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"
#include "core/state/possible_deadlock.hpp"

namespace colock::inline v0::detail::operations {

using namespace std::chrono_literals;

lock_record::ptr prepare(const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options,
    renewal default_renewal, bool keeps_place, std::string_view group)
{
    const auto ttl = options.ttl.value_or(self->options.ttl);
    if (!options.retry.empty())
        options.retry = options.retry.with_defaults(self->options.retry);
    const auto max_hold = options.max_hold ? options.max_hold : self->options.max_hold;
    auto refused = check_acquire_options(key, options, self->options.ttl, *self->backend, self->limits, self->can);
    if (!refused && self->margins.any())
        refused = check_margins(ttl, self->backend->max_clock_lead(ttl), self->options, default_renewal);
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
    if (self->options.debug)
        owner = std::make_shared<const located_owner_data>(located_owner_data{{*owner}, options.location});
    lock_record::ptr record(new lock_record(self, {.key = std::move(key),
                                                      .mode = options.mode,
                                                      .max_holders = options.max_holders,
                                                      .ttl = ttl,
                                                      .keeps_place = keeps_place,
                                                      .owner = std::move(owner)}));
    record->acquire_state().input_failure = std::move(refused);
    if (!options.retry.empty())
        record->own_policy = std::make_unique<const retry_policy>(std::move(options.retry));
    record->acquire_state().renews = options.renewal.value_or(default_renewal) == renewal::automatic && ttl > 0ms;
    record->acquire_state().max_hold = max_hold.value_or(0ms);
    return record;
}

void limit_wait(const core& self, acquire_options& options, lease_clock::duration within)
{
    auto& policy = options.retry;
    policy = policy.with_defaults(self.options.retry);
    if (within <= within.zero())
        policy.times(0);
    else if (!policy.max_time() || *policy.max_time() > within)
        policy.total_time(within);
}

} // namespace colock::inline v0::detail::operations
