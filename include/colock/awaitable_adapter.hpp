// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/adapter.hpp>

namespace colock {

/// The easy way to write an adapter: each operation is a coroutine, spawned on the adapter's executor. An exception
/// that leaves one becomes a failure: a code of errc as it is, any other as `errc::outcome_unknown` with it as cause.
/// Costs a `co_spawn` per operation.
class awaitable_adapter : public adapter
{
public:
    using adapter::adapter;

    void start_create(claim_ptr claim, completion<create_outcome> done) final;
    void start_release(claim_ptr claim, completion<release_outcome> done) final;
    void start_abandon(claim_ptr claim, completion<release_outcome> done) final;
    void start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done) final;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) final;

protected:
    [[nodiscard]] virtual asio::awaitable<create_outcome> do_create(claim_ptr claim) = 0;
    [[nodiscard]] virtual asio::awaitable<release_outcome> do_release(claim_ptr claim) = 0;
    /// Default: `do_release`, right where requests cannot arrive late or out of order.
    [[nodiscard]] virtual asio::awaitable<release_outcome> do_abandon(claim_ptr claim);
    [[nodiscard]] virtual asio::awaitable<extend_outcome> do_extend(claim_ptr claim, std::chrono::milliseconds ttl) = 0;
    [[nodiscard]] virtual asio::awaitable<valid_outcome> do_is_valid(claim_ptr claim) = 0;
};

} // namespace colock
