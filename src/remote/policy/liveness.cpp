// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/liveness.hpp"

#include <utility>

namespace colock::remote {

liveness::action liveness::turn(std::uint64_t heard, bool owed) noexcept
{
    const bool greeted = heard != 0;
    const bool spoke = std::exchange(heard_before_, heard) != heard;
    silent_ = spoke || (!greeted && !owed) ? 0 : silent_ + 1;
    if (silent_ >= (greeted ? limits_.silence : limits_.greeting))
        return action::give_up;
    if (!greeted || silent_ == 0 || asked_)
        return action::go_on;
    asked_ = true;
    return action::ask;
}

} // namespace colock::remote
