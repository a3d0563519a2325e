// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/commands.hpp"
#include "mongo/commands/statement_errors.hpp"
#include "mongo/driver/destination.hpp"
#include "mongo/driver/driver.hpp"
#include "mongo/settings.hpp"
#include "mongo/templates/lock_view.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <mongoc/mongoc.h>

namespace bench {
namespace {

namespace mg = colock::mongo::detail;

/// The default number of connections of colock.
constexpr std::size_t max_connections = 8;

double cpu_us()
{
    std::timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

mg::document run_command(mongoc_client_t& client, const mg::document& command)
{
    mg::document reply;
    bson_error_t error;
    if (!mongoc_client_command_simple(&client, "colock", command.get(), nullptr, reply.overwrite(), &error))
        throw std::runtime_error("libmongoc on threads: the server refused a command: " + std::string(error.message));
    return reply;
}

/// Sends the same command as colock.
void update(mongoc_client_t& client, const mg::settings& config, const mg::command_template& statement,
    mg::command_template::values values)
{
    mg::batch_update one(config);
    one.add([&](bson_t& to) { statement.append_to(to, values); });
    const mg::statement_errors errors(run_command(client, one.take()));
    if (errors.find(0) || !errors.accounts_for(1))
        throw std::runtime_error("libmongoc on threads: the server refused a statement");
}

/// Returns the system time in microseconds, so that the fence of each key grows.
std::int64_t next_fence()
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

struct shared_counts
{
    std::atomic<std::uint64_t> pairs{0};
    std::atomic<bool> stopping{false};
};

void drive(const workload& load, shared_counts& counted, std::size_t first, std::size_t step)
{
    const auto uri = mg::driver_uri({.host = load.host, .port = load.port});
    const std::unique_ptr<mongoc_client_t, decltype(&mongoc_client_destroy)> client(
        mongoc_client_new_from_uri(uri.get()), &mongoc_client_destroy);
    const auto& all = mg::commands::get();
    const auto owner = mg::to_document({.owner = "12345", .host = "host"});
    const mg::settings config({.url = "mongodb://" + load.host + ':' + load.port});
    const std::string token(32, 'a');
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    std::size_t key = first;
    while (!counted.stopping) {
        const auto at = "raw:" + workload::name(key);
        update(*client, config, all.batched_first_exclusive.with_ttl,
            {{"k", mg::bytes{at}}, {"t", token}, {"x", load.ttl.count()}, {"l", never}, {"e", std::int64_t{1}},
                {"f", next_fence()}, {"o", &owner}});
        update(*client, config, all.batched_release_exclusive, {{"k", mg::bytes{at}}, {"t", token}});
        counted.pairs.fetch_add(1, std::memory_order_relaxed);
        key = key + step < load.keys ? key + step : first;
    }
}

} // namespace

rate run_driver_threads(const workload& load)
{
    mg::start_driver();
    shared_counts counted;
    const auto count = std::min(load.in_flight, max_connections);
    std::vector<std::jthread> threads;
    for (std::size_t each = 0; each < count; ++each)
        threads.emplace_back([&, each] { drive(load, counted, each, count); });
    std::this_thread::sleep_for(load.warm_up());
    const auto before = counted.pairs.load();
    const auto cpu = cpu_us();
    const auto begun = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(load.time);
    const auto pairs = static_cast<double>(counted.pairs.load() - before);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const auto cpu_used = cpu_us() - cpu;
    counted.stopping = true;
    threads.clear();
    return {.pairs_per_second = pairs / took.count(),
        .cpu_us_per_pair = cpu_used / std::max(pairs, 1.0),
        .pairs = static_cast<double>(counted.pairs.load())};
}

} // namespace bench
