// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "testing/scripted_state.hpp"

#include <colock/testing/scripted_adapter.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {

/// The scripted adapter of the tests of colock itself. Also records all calls of the core and violations of the
/// contract of `adapter`, reports other traits than the backend, and ties grants to a session. In contrast to its base,
/// it reports no connection until a test does so by contact().
class instrumented_adapter : public scripted_adapter
{
public:
    using call = scripted_adapter::call;

    explicit instrumented_adapter(std::shared_ptr<adapter> backend, timing completions = timing::posted);
    /// Uses another executor than the backend's. The context of that executor may be destroyed before the backend.
    instrumented_adapter(
        std::shared_ptr<adapter> backend, asio::any_io_executor executor, timing completions = timing::posted);

    /// All calls in the order in which they were started.
    [[nodiscard]] std::vector<call> calls() const;
    void forget_calls();
    /// Violations of the contract of `adapter` by the core: two operations of one claim at once, or an operation that
    /// was started before the claim's wait had ended or was cancelled.
    [[nodiscard]] std::vector<std::string> breaches() const;
    /// Number of held requests whose claim was cancelled after they were sent.
    [[nodiscard]] std::size_t unwanted_count() const;

    /// Makes the answer of a release or hand_over say that other lockers wait for the key.
    [[nodiscard]] static step others_wait(step behavior);
    /// Passes abandon on even if a request of its claim is held back, like a backend that breaks the contract.
    void trust_abandon(bool trust);
    /// Reports these capabilities. Default: the capabilities of the backend below, with `immediate` according to the
    /// timing.
    void set_capabilities(colock::capabilities given);
    void set_limits(adapter_limits given);
    /// Default: the value of the backend below.
    void set_max_clock_lead(std::chrono::milliseconds given);

    /// From now on each grant is tied to a session, as on a backend that ends the locks of a lost client. The grant is
    /// valid until `until` at most.
    void open_session(lease_clock::time_point until);
    /// Extends the session until `until`. Returns false if the session had expired already.
    [[nodiscard]] bool extend_session(lease_clock::time_point until);
    /// Ends the session. Later grants are not tied to a session.
    void end_session();

    using adapter::contact;

    [[nodiscard]] adapter_traits traits() const noexcept override;
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept override;
    void cancel_close() noexcept override;

    int cancelled_closes = 0;

private:
    mutable std::mutex mutex_;
    std::optional<colock::capabilities> given_capabilities_;
    std::optional<adapter_limits> given_limits_;
    /// In milliseconds; negative if not set. Atomic, because it is read while the core's mutex is held and must not
    /// take another mutex.
    std::atomic<std::chrono::milliseconds::rep> given_clock_lead_{-1};
};

using call = instrumented_adapter::call;

} // namespace colock::testing
