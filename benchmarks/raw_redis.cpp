// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"
#include "statistics.hpp"
#include "wire.hpp"

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

class raw_race
{
public:
    raw_race(const race& of, const std::string& value)
        : of_(of), value_(value), ttl_(std::to_string(of.ttl.count())), wire_(of.host, of.port)
    {
        const auto& release = colock::redis::detail::scripts::get().release;
        expect(wire_.ask({"SCRIPT", "LOAD", release.text()}) == "$40", "SCRIPT LOAD with an error");
        digest_ = wire_.line();
    }

    rate run()
    {
        for (std::size_t key = 0; key < of_.in_flight; ++key)
            acquire({key, value_});
        run_until(std::chrono::steady_clock::now() + of_.warm_up());
        const auto before = pairs_;
        const auto start = std::chrono::steady_clock::now();
        const auto cpu = thread_cpu_time();
        run_until(start + of_.time);
        const auto pairs = static_cast<double>(pairs_ - before);
        const auto used = static_cast<double>((thread_cpu_time() - cpu).count());
        const auto elapsed = static_cast<double>((std::chrono::steady_clock::now() - start).count());
        stopping_ = true;
        while (!flying_.empty())
            turn();
        return {pairs * 1e9 / elapsed, used / 1e3 / std::max(pairs, 1.0), static_cast<double>(pairs_)};
    }

private:
    void run_until(std::chrono::steady_clock::time_point end)
    {
        while (std::chrono::steady_clock::now() < end)
            turn();
    }
    void turn()
    {
        wire_.flush();
        wire_.lines([this](std::string_view answer) { answered(answer); });
    }

    void acquire(pair_in_flight next)
    {
        // A token of its own for each pair, as costly to send as colock's.
        std::uint64_t number = ++tokens_;
        for (std::size_t digit = 0; digit < 16; ++digit, number >>= 4)
            next.value[digit] = "0123456789abcdef"[number & 15];
        wire_.command({"SET", locked(next.key), next.value, "NX", "PX", ttl_});
        wire_.command({"INCR", "{colock}#fence"});
        next.waits_for = pair_in_flight::step::set;
        flying_.push_back(std::move(next));
    }
    void answered(std::string_view answer)
    {
        using enum pair_in_flight::step;
        auto& first = flying_.front();
        if (first.waits_for == set) {
            expect(answer == "+OK", answer);
            first.waits_for = count;
            return;
        }
        expect(answer.starts_with(':'), answer);
        auto pair = std::move(first);
        flying_.pop_front();
        if (pair.waits_for == count) {
            wire_.command({"EVALSHA", digest_, "2", locked(pair.key), "{colock}#probe",
                std::string_view(pair.value).substr(0, 32)});
            pair.waits_for = release;
            flying_.push_back(std::move(pair));
            return;
        }
        expect(answer == ":1", answer);
        ++pairs_;
        pair.key = of_.next(pair.key);
        if (!stopping_)
            acquire(std::move(pair));
    }
    const std::string& locked(std::size_t key) { return name_ = "{colock}:" + race::name(key); }

    const race& of_;
    const std::string& value_;
    std::string ttl_;
    wire wire_;
    std::string digest_;
    /// In the order of their last commands, which is that of the answers.
    std::deque<pair_in_flight> flying_;
    std::string name_;
    std::uint64_t tokens_ = 0;
    std::uint64_t pairs_ = 0;
    bool stopping_ = false;
};

} // namespace

rate run_raw(const race& of, const std::string& value)
{
    return raw_race(of, value).run();
}

std::string stored_at(const race& of, const std::string& key)
{
    wire asked(of.host, of.port);
    expect(asked.ask({"GET", key}).starts_with('$'), "GET with an error");
    return asked.line();
}

double server_cpu_us(const race& of)
{
    wire asked(of.host, of.port);
    asked.command({"INFO", "cpu"});
    asked.flush();
    double seconds = 0.0;
    for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
        std::string line = asked.line();
        while (!line.starts_with(name))
            line = asked.line();
        seconds += std::stod(line.substr(name.size()));
    }
    return seconds * 1e6;
}

} // namespace bench
