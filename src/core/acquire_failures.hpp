// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/outcome.hpp>

#include <utility>

namespace colock::detail {

[[nodiscard]] inline failure_ptr too_late_to_use()
{
    return make_failure(
        errc::unavailable, "the grant arrived when too little of its ttl was left; use a longer ttl, or a faster link");
}

[[noreturn]] inline void throw_failed(const failure& why, error_context context)
{
    context.cause = why.cause;
    context.detail = why.detail;
    throw create_error(why.code, std::move(context));
}

} // namespace colock::detail
