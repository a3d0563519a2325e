// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/request_operation.hpp"

#include <string>

namespace colock::zookeeper::detail {

failure_ptr failure_of(const reply& answer)
{
    const auto code = " (the driver's code is " + std::to_string(answer.code) + ')';
    switch (answer.what) {
    case status::unanswered:
        return make_failure(errc::outcome_unknown, "the connection was lost before this was answered");
    case status::access_denied:
        return make_failure(errc::access_denied, "the server does not let us work on this node" + code);
    case status::refused:
        // By us.
        if (answer.code == 0)
            return make_failure(errc::invalid_key, "with its key this would be more than a server takes");
        return make_failure(errc::misconfigured_backend, "the server refuses this" + code);
    default:
        return make_failure(errc::unavailable, "the server could not do this now" + code);
    }
}

} // namespace colock::zookeeper::detail
