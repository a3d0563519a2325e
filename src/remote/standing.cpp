// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/standing.hpp"

#include <utility>

namespace colock::remote {

standing::news standing::opened() noexcept
{
    ++open_;
    const bool is_first = !std::exchange(was_ready_, true);
    if (std::exchange(is_lost_, false))
        return news::reconnected;
    return is_first ? news::ready : news::none;
}

standing::news standing::failed() noexcept
{
    if (open_ > 0)
        return news::none;
    is_lost_ = was_ready_;
    return news::unreachable;
}

standing::news standing::lost() noexcept
{
    if (--open_ > 0)
        return news::none;
    is_lost_ = true;
    return news::suspended;
}

} // namespace colock::remote
