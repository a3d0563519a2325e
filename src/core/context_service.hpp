// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace colock::detail {

/// One per execution context: knows its members, weakly.
///
/// Thread safety: join is safe; the rest is the context's.
class context_service final : public asio::execution_context::service
{
public:
    using key_type = context_service;
    static asio::execution_context::id id;

    explicit context_service(asio::execution_context& context);

    /// Registers a member with the context of `executor`. A member that dies needs no deregistration.
    static void join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member);

private:
    void shutdown() noexcept override;
    void notify_fork(asio::execution_context::fork_event event) override;
    [[nodiscard]] std::vector<std::shared_ptr<context_member>> members();

    std::mutex mutex_;
    std::vector<std::weak_ptr<context_member>> members_;
    std::size_t prune_at_ = 64;
};

/// An executor that is let go of when its context shuts down.
///
/// Thread safety: all members may be called from any thread.
class executor_cell final : public context_member
{
public:
    [[nodiscard]] static std::shared_ptr<executor_cell> make(asio::any_io_executor executor);

    /// Empty after the context's shutdown.
    [[nodiscard]] asio::any_io_executor get() const;
    void context_shutdown() noexcept override;

private:
    mutable std::mutex mutex_;
    asio::any_io_executor executor_;
};

} // namespace colock::detail
