// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/names.hpp"

#include "redis/operations/claim_state.hpp"
#include "remote/adapter/stored_owner.hpp"

namespace colock::inline v0::redis::detail {

std::string key_name::text() const
{
    std::string whole;
    whole.reserve(size());
    append_to(whole);
    return whole;
}

void token_text::append_to(std::string& to) const
{
    const auto at = to.size();
    to.resize(at + size());
    token_.hex_to(to.data() + at);
}

stored_value::stored_value(const settings& config, const claim& claim) : claim_(claim), with_owner_(!config.plain())
{
    if (!with_owner_)
        return;
    const auto* const state = find_state(claim);
    created_ = state ? state->created : remote::wall_clock_ms();
}

std::size_t stored_value::size() const noexcept
{
    if (!with_owner_)
        return token_text::size();
    const std::size_t letter = claim_.mode() == lock_mode::shared ? 1 : 0;
    return letter + token_text::size() + remote::stored_owner_size(claim_.owner());
}

void stored_value::append_to(std::string& to) const
{
    if (with_owner_ && claim_.mode() == lock_mode::shared)
        to += 's';
    token_text(claim_).append_to(to);
    if (with_owner_)
        remote::append_stored_owner(to, claim_.owner(), created_);
}

} // namespace colock::inline v0::redis::detail
