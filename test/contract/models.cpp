// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The model servers of the simulator, over links without faults.
#include "contract/virtual_environment.hpp"
#include "simulation/model_adapter.hpp"

#include <boost/asio/post.hpp>

#include <memory>
#include <string>
#include <utility>

namespace colock::contract {

namespace {

/// Passes messages on an `io_context`.
class direct_network final : public simulation::network
{
public:
    explicit direct_network(asio::io_context& io) : io_(io) {}

    void after(lease_clock::duration delay, std::function<void()> action) override
    {
        if (delay <= delay.zero()) {
            asio::post(io_, std::move(action));
            return;
        }
        auto timer = std::make_unique<lease_timer>(io_, delay);
        auto& waiting = *timer;
        waiting.async_wait([timer = std::move(timer), action = std::move(action)](const error_code&) { action(); });
    }
    [[nodiscard]] lease_clock::time_point true_time() const override { return lease_clock::now(); }
    [[nodiscard]] lease_clock::time_point server_time() const override { return lease_clock::now(); }
    [[nodiscard]] simulation::random_source& random() override { return random_; }

private:
    asio::io_context& io_;
    simulation::random_source random_{1};
};

backend model_backend(std::string name, colock::capabilities can)
{
    return {
        .name = std::move(name), .capabilities = can, .make_environment = in_virtual_time([can](asio::io_context& io) {
            return [&io, can, network = std::make_shared<direct_network>(io),
                       server = std::make_shared<simulation::model_store>(can)] {
                return std::make_shared<simulation::model_adapter>(
                    io.get_executor(), server, *network, simulation::model_options{.can = can});
            };
        })};
}

constexpr capabilities all_but_fifo{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fence = true,
    .list = true,
    .lists_fence = true,
    .events = true,
    .create_all = true,
    .groups = true,
    .extends_groups = true,
    .tickets = true};

constexpr capabilities with_queue = [] {
    auto can = all_but_fifo;
    can.fifo = true;
    return can;
}();
constexpr capabilities without_events = [] {
    auto can = all_but_fifo;
    can.events = false;
    return can;
}();
/// Cases for groups and tickets look at the remaining time of a lock, which such a server does not know.
constexpr capabilities without_expiry = [] {
    auto can = all_but_fifo;
    can.expires = can.extends_groups = can.tickets = false;
    return can;
}();

const registration model(model_backend("model", all_but_fifo));
const registration queueing_model(model_backend("queueing_model", with_queue));
const registration polled_model(model_backend("polled_model", without_events));
const registration lasting_model(model_backend("lasting_model", without_expiry));

} // namespace

} // namespace colock::contract
