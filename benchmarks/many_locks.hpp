// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "longest_handler.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace bench {

/// Many coroutines that use one locker, each with its own key. The class measures how long they block the event loop.
class many_locks
{
public:
    explicit many_locks(std::size_t size) : size_(size) {}
    many_locks(const many_locks&) = delete;
    many_locks& operator=(const many_locks&) = delete;

    /// Shuts the locker down. Returns the longest handler until all coroutines have ended.
    [[nodiscard]] longest_time shut_down();

protected:
    virtual ~many_locks() = default;

    void connect(const std::string& url);
    /// The work of one coroutine.
    [[nodiscard]] virtual boost::asio::awaitable<void> run_one(std::string key) = 0;
    void start();
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }
    [[nodiscard]] colock::locker& locker() noexcept { return *locker_; }
    /// Number of coroutines that have not ended.
    [[nodiscard]] std::size_t running() const noexcept { return running_; }

private:
    static boost::asio::awaitable<void> start_all(many_locks& self);
    static boost::asio::awaitable<void> run(many_locks& self, std::size_t number);

    const std::size_t size_;
    boost::asio::io_context io_{1};
    std::optional<colock::locker> locker_;
    std::size_t running_ = 0;
};

} // namespace bench
