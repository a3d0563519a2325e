// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"
#include "redis_connection.hpp"
#include "statistics.hpp"

#include "redis/scripts/scripts.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

namespace bench {
namespace {

struct pair_in_flight
{
    enum class step : unsigned char
    {
        set,
        count,
        release,
    };

    std::size_t key;
    std::string value;
    step waits_for = step::set;
};

class raw_client
{
public:
    raw_client(const workload& load, const std::string& value)
        : load_(load), value_(value), ttl_(std::to_string(load.ttl.count())), connection_(load.host, load.port)
    {
        const auto& release = colock::redis::detail::scripts::get().release;
        expect(connection_.ask({"SCRIPT", "LOAD", release.text()}) == "$40", "SCRIPT LOAD with an error");
        digest_ = connection_.read_line();
    }

    rate run()
    {
        for (std::size_t key = 0; key < load_.in_flight; ++key)
            acquire({key, value_});
        run_until(std::chrono::steady_clock::now() + load_.warm_up());
        const auto before = pairs_;
        const auto start = std::chrono::steady_clock::now();
        const auto cpu = thread_cpu_time();
        run_until(start + load_.time);
        const auto pairs = static_cast<double>(pairs_ - before);
        const auto used = static_cast<double>((thread_cpu_time() - cpu).count());
        const auto elapsed = static_cast<double>((std::chrono::steady_clock::now() - start).count());
        stopping_ = true;
        while (!in_flight_.empty())
            exchange();
        return {pairs * 1e9 / elapsed, used / 1e3 / std::max(pairs, 1.0), static_cast<double>(pairs_)};
    }

private:
    void run_until(std::chrono::steady_clock::time_point end)
    {
        while (std::chrono::steady_clock::now() < end)
            exchange();
    }
    void exchange()
    {
        connection_.flush();
        connection_.read_lines([this](std::string_view answer) { handle_reply(answer); });
    }

    void acquire(pair_in_flight next)
    {
        // Each pair uses its own token, with the same length as colock's tokens.
        std::uint64_t number = ++tokens_;
        for (std::size_t digit = 0; digit < 16; ++digit, number >>= 4)
            next.value[digit] = "0123456789abcdef"[number & 15];
        connection_.add_command({"SET", lock_key(next.key), next.value, "NX", "PX", ttl_});
        connection_.add_command({"INCR", "{colock}#fence"});
        next.waits_for = pair_in_flight::step::set;
        in_flight_.push_back(std::move(next));
    }
    void handle_reply(std::string_view answer)
    {
        using enum pair_in_flight::step;
        auto& first = in_flight_.front();
        if (first.waits_for == set) {
            expect(answer == "+OK", answer);
            first.waits_for = count;
            return;
        }
        expect(answer.starts_with(':'), answer);
        auto pair = std::move(first);
        in_flight_.pop_front();
        if (pair.waits_for == count) {
            connection_.add_command(
                {"EVALSHA", digest_, "1", lock_key(pair.key), std::string_view(pair.value).substr(0, 32)});
            pair.waits_for = release;
            in_flight_.push_back(std::move(pair));
            return;
        }
        expect(answer == ":1", answer);
        ++pairs_;
        pair.key = load_.next(pair.key);
        if (!stopping_)
            acquire(std::move(pair));
    }
    const std::string& lock_key(std::size_t key) { return name_ = "{colock}:" + workload::name(key); }

    const workload& load_;
    const std::string& value_;
    std::string ttl_;
    redis_connection connection_;
    std::string digest_;
    /// Pairs in the order of their last commands, which is the order of the replies.
    std::deque<pair_in_flight> in_flight_;
    std::string name_;
    std::uint64_t tokens_ = 0;
    std::uint64_t pairs_ = 0;
    bool stopping_ = false;
};

} // namespace

rate run_raw(const workload& load, const std::string& value)
{
    return raw_client(load, value).run();
}

std::string stored_at(const workload& load, const std::string& key)
{
    redis_connection connection(load.host, load.port);
    expect(connection.ask({"GET", key}).starts_with('$'), "GET with an error");
    return connection.read_line();
}

double server_cpu_us(const workload& load)
{
    redis_connection connection(load.host, load.port);
    connection.add_command({"INFO", "cpu"});
    connection.flush();
    double seconds = 0.0;
    for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
        std::string line = connection.read_line();
        while (!line.starts_with(name))
            line = connection.read_line();
        seconds += std::stod(line.substr(name.size()));
    }
    return seconds * 1e6;
}

} // namespace bench
