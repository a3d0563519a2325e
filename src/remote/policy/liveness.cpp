// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/liveness.hpp"

#include <utility>

namespace colock::inline v0::remote {

liveness::action liveness::check(std::uint64_t received_count, bool awaits_answer) noexcept
{
    const bool has_received = received_count != 0;
    const bool has_new_data = std::exchange(last_received_count_, received_count) != received_count;
    silent_count_ = has_new_data || (!has_received && !awaits_answer) ? 0 : silent_count_ + 1;
    if (silent_count_ >= (has_received ? limits_.silence : limits_.before_first_data))
        return action::give_up;
    if (!has_received || silent_count_ == 0 || is_probing_)
        return action::none;
    is_probing_ = true;
    return action::ask;
}

} // namespace colock::inline v0::remote
