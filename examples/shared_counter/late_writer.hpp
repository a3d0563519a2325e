// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>

namespace asio = boost::asio;

inline bool write_and_print(const report& paper, const colock::lock& lock, const std::string& author)
{
    const bool accepted = paper.write(author, lock.fence());
    std::cout << author << ", fence " << lock.fence() << ": " << (accepted ? "written" : "refused") << std::endl;
    return accepted;
}

/// Stops in the middle of its work for longer than its lease, like a process that is swapped out, suspended or moved to
/// another machine. No lock service can prevent the process from continuing afterwards, but the report can refuse its
/// write.
inline asio::awaitable<void> write_late(colock::locker locker, const report& paper)
{
    colock::lock lock = co_await locker.acquire("report", {.ttl = std::chrono::milliseconds(500)});
    write_and_print(paper, lock, "first writer");
    std::raise(SIGSTOP);
    // lock.held() is false now. But a check does not help if the write was already on its way.
    write_and_print(paper, lock, "first writer, late");
}

/// Waits until the lease of the first writer has expired, and then gets a higher fence.
inline asio::awaitable<void> write_next(colock::locker locker, const report& paper)
{
    colock::lock lock = co_await locker.acquire("report");
    write_and_print(paper, lock, "second writer");
    co_await lock.release();
}
