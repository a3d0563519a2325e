// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/context_gate.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/query.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

/// Returns the execution context of a non-empty executor.
[[nodiscard]] inline asio::execution_context& execution_context_of(const asio::any_io_executor& executor)
{
    return asio::query(executor, asio::execution::context);
}

/// Asio service that notifies the members of an execution context of its shutdown, and then closes the gate of the
/// context. Holds weak references to the members.
///
/// Thread safety: the public functions may be called from any thread; the context calls all others.
class context_service final : public asio::execution_context::service
{
public:
    using key_type = context_service;
    static asio::execution_context::id id;

    explicit context_service(asio::execution_context& context);

    /// Returns the service of the executor's context, and creates it if there is none. The context must not have shut
    /// down.
    [[nodiscard]] static context_service& of(const asio::any_io_executor& executor);
    /// Registers a member with the context of `executor`. A member that is destroyed needs no deregistration.
    static void join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member);

    [[nodiscard]] const std::shared_ptr<context_gate>& gate() const noexcept { return gate_; }

private:
    void shutdown() noexcept override;
    [[nodiscard]] std::vector<std::shared_ptr<context_member>> members();

    std::mutex mutex_;
    std::vector<std::weak_ptr<context_member>> members_;
    std::size_t prune_at_ = 64;
    const std::shared_ptr<context_gate> gate_ = std::make_shared<context_gate>();
};

} // namespace colock::inline v0::detail
