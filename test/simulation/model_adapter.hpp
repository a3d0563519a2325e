// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "simulation/model_store.hpp"
#include "simulation/seams.hpp"

#include <colock/spi/adapter.hpp>

#include <functional>
#include <map>
#include <memory>

namespace colock::simulation {

/// The links between the processes and the servers.
class network
{
public:
    /// Calls `action` after true time has passed.
    virtual void after(lease_clock::duration delay, std::function<void()> action) = 0;
    [[nodiscard]] virtual time_point true_time() const = 0;
    [[nodiscard]] virtual time_point server_time() const = 0;
    [[nodiscard]] virtual random_source& random() = 0;
    /// Called when a release is started, on its process.
    virtual void on_release(const std::string& /*key*/) {}

protected:
    ~network() = default;
};

/// The state of a link. Faults change it for a while.
struct link_quality
{
    lease_clock::duration min_delay{0};
    lease_clock::duration max_delay{0};
    /// Messages may overtake each other.
    bool overtakes = false;
    /// Every n-th request is refused as unavailable, and not carried out. 0: none.
    unsigned refused_once_in = 0;
    /// Messages arrive after this true time.
    time_point silent_until{};
};

struct model_options
{
    colock::capabilities can;
    milliseconds answer_timeout{1000};
    bool reports_timeout = false;
};

/// The adapter of one process to one model server, by a link that delays, loses and interrupts messages.
///
/// A request whose connection was cut has an unknown outcome: it is lost, or it arrives late. Requests that wait for a
/// connection fail as unavailable.
///
/// Thread safety: none.
class model_adapter final : public adapter
{
public:
    model_adapter(
        asio::any_io_executor executor, std::shared_ptr<model_store> server, network& through, model_options chosen);

    link_quality quality;
    /// Cuts the connection. The process connects again after `down`.
    void cut(lease_clock::duration down);
    /// Number of operations and waits that have not ended.
    [[nodiscard]] std::size_t unfinished() const noexcept { return pending_.size() + waits_.size(); }

    adapter_traits traits() const noexcept override;

    void start_create(claim_ptr claim, completion<create_outcome> done) override;
    void start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done) override;
    void start_extend(claim_ptr claim, milliseconds ttl, completion<extend_outcome> done) override;
    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override;
    void start_wait(claim_ptr claim, time_point until, completion<wait_outcome> done) override;
    void cancel_wait(claim& claim) noexcept override;
    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override;
    void start_listing(listing_request request, completion<list_outcome> done) override;
    void start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done) override;
    void start_group(std::string id, group_action what, milliseconds ttl, completion<group_outcome> done) override;
    void start_export(claim_ptr held, completion<export_outcome> done) override;
    void start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done) override;
    void start_close(lease_clock::duration deadline, completion<close_outcome> done) override;

private:
    struct pending_call
    {
        bool is_sent = false;
        std::function<void()> send;
        std::function<void(const failure_ptr&)> fail;
    };
    struct pending_wait
    {
        claim_ptr waiting;
        completion<wait_outcome> done;
    };

    /// Sends a request. `execute(store, now)` returns the outcome.
    template <class Outcome, class Execute, class Done>
    void call(Execute execute, Done done);
    /// Queries tokens, and then removes exactly these holders.
    template <class Outcome>
    void remove_found(filter which, completion<Outcome> done);
    [[nodiscard]] lease_clock::duration delay(time_point& last_arrival);
    void post(std::function<void()> action);
    void on_timeout(std::uint64_t id);
    void fail(std::uint64_t id, errc code);
    void send_wait(std::uint64_t id, const claim_data& data);
    void end_wait(std::uint64_t id);
    void end_all_waits();
    void connect();

    const std::shared_ptr<model_store> server_;
    network& network_;
    const model_options options_;
    std::map<std::uint64_t, pending_call> pending_;
    std::map<std::uint64_t, pending_wait> waits_;
    std::uint64_t last_id_ = 0;
    std::uint64_t connection_ = 0;
    bool is_connected_ = false;
    bool was_connected_ = false;
    time_point last_request_{};
    time_point last_reply_{};
};

} // namespace colock::simulation
