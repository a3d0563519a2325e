// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "ensemble.hpp"

#include "support/sockets.hpp"

#include <stdexcept>
#include <thread>
#include <utility>

namespace colock::testing {

namespace {

using namespace std::chrono_literals;

std::string address(std::uint16_t port)
{
    return "127.0.0.1:" + std::to_string(port);
}

} // namespace

zookeeper_ensemble::zookeeper_ensemble(int sync_limit)
{
    std::array<std::uint16_t, size> quorum{};
    std::array<std::uint16_t, size> election{};
    for (std::size_t to = 0; to < size; ++to) {
        quorum[to] = free_port();
        election[to] = free_port();
        for (std::size_t from = 0; from < size; ++from) {
            if (from != to)
                links_[to][from] = std::make_unique<link>(quorum[to], election[to]);
        }
    }
    for (std::size_t one = 0; one < size; ++one) {
        std::string peers = "initLimit=20\nsyncLimit=" + std::to_string(sync_limit) + "\nmaxSessionTimeout=40000\n";
        for (std::size_t to = 0; to < size; ++to) {
            const auto& by = links_[to][one];
            peers += "server." + std::to_string(to + 1) +
                     "=127.0.0.1:" + std::to_string(by ? by->quorum.port() : quorum[to]) + ':' +
                     std::to_string(by ? by->election.port() : election[to]) + '\n';
            // A server sends its election address to its peers, so the link replaces the address.
            if (by)
                by->election.put_in_place(address(election[one]), address(links_[one][to]->election.port()));
        }
        servers_[one] = std::make_unique<zookeeper_server>(free_port(), one + 1, peers);
        peers_[one] = std::move(peers);
    }
    restore();
}

std::string zookeeper_ensemble::url(std::size_t first, std::size_t count) const
{
    std::string url = "zookeeper://";
    for (std::size_t i = 0; i < count; ++i)
        (url += i == 0 ? "" : ",") += address(servers_[(first + i) % size]->port());
    return url;
}

std::size_t zookeeper_ensemble::leader(std::optional<std::size_t> paused)
{
    for (const auto limit = std::chrono::steady_clock::now() + 60s;; std::this_thread::sleep_for(10ms)) {
        for (std::size_t i = 0; i < size; ++i) {
            if (i != paused && servers_[i]->alive() && servers_[i]->mode() == "leader")
                return i;
        }
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("the ensemble has no leader");
    }
}

void zookeeper_ensemble::make_leader(std::size_t number)
{
    int attempts = 0;
    for (auto other = leader(); other != number; other = leader()) {
        if (++attempts > 10)
            throw std::runtime_error("the ensemble does not elect the leader that a test needs");
        servers_[other]->kill();
        static_cast<void>(leader());
        servers_[other]->start();
    }
}

void zookeeper_ensemble::cut_off(std::size_t number, bool cut)
{
    for (std::size_t other = 0; other < size; ++other) {
        if (other == number)
            continue;
        for (const auto& each : {links_[number][other].get(), links_[other][number].get()}) {
            each->quorum.silence(cut);
            each->election.silence(cut);
        }
    }
}

void zookeeper_ensemble::set_clock(std::size_t number, std::chrono::seconds ahead)
{
    altered_.at(number) = true;
    servers_[number]->kill();
    servers_[number]->launch({"LD_PRELOAD=" COLOCK_WRONG_CLOCK, "COLOCK_CLOCK_AHEAD=" + std::to_string(ahead.count())});
    servers_[number]->wait_until_serving();
}

void zookeeper_ensemble::limit_sessions(std::size_t number, std::chrono::milliseconds max_timeout)
{
    altered_.at(number) = true;
    servers_[number]->kill();
    servers_[number]->configure(peers_[number] + "maxSessionTimeout=" + std::to_string(max_timeout.count()) + '\n');
    servers_[number]->start();
}

void zookeeper_ensemble::restore()
{
    for (std::size_t i = 0; i < size; ++i) {
        cut_off(i, false);
        servers_[i]->resume();
        if (std::exchange(altered_[i], false))
            servers_[i]->kill();
        servers_[i]->configure(peers_[i]);
        if (!servers_[i]->alive())
            servers_[i]->launch();
    }
    for (const auto& each : servers_)
        each->wait_until_serving();
}

zookeeper_ensemble& shared_ensemble()
{
    static zookeeper_ensemble ensemble;
    ensemble.restore();
    return ensemble;
}

zookeeper_ensemble& quick_ensemble()
{
    static zookeeper_ensemble ensemble(4);
    ensemble.restore();
    return ensemble;
}

} // namespace colock::testing
