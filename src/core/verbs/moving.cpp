// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"
#include "core/failures.hpp"
#include "core/verbs.hpp"

namespace colock::detail::verbs {

asio::awaitable<std::string> detach(std::shared_ptr<core> self, record::ptr held)
{
    auto context = context_of(*self, *held);
    context.detail = self->backend_name() + " cannot move locks to another process";
    throw validation_error(errc::unsupported, std::move(context));
    co_return std::string();
}

asio::awaitable<lock> adopt(std::shared_ptr<core> self, std::string, acquire_options)
{
    throw validation_error(errc::unsupported,
        {.backend = self->backend_name(), .detail = self->backend_name() + " cannot move locks to another process"});
    co_return lock();
}

} // namespace colock::detail::verbs
