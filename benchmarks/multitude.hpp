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

/// Coroutines of one locker, each with a key of its own, and how long they hold up the event loop.
class multitude
{
public:
    explicit multitude(std::size_t size) : size_(size) {}
    multitude(const multitude&) = delete;
    multitude& operator=(const multitude&) = delete;

    /// Until all have been told of a shutdown.
    [[nodiscard]] longest_time shut_down();

protected:
    virtual ~multitude() = default;

    void connect(const std::string& url);
    /// What each of them does.
    [[nodiscard]] virtual boost::asio::awaitable<void> live(std::string key) = 0;
    void spawn();
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }
    [[nodiscard]] colock::locker& locker() noexcept { return *locker_; }
    /// How many have not ended.
    [[nodiscard]] std::size_t running() const noexcept { return running_; }

private:
    static boost::asio::awaitable<void> spawn_all(multitude& self);
    static boost::asio::awaitable<void> run(multitude& self, std::size_t number);

    const std::size_t size_;
    boost::asio::io_context io_{1};
    std::optional<colock::locker> locker_;
    std::size_t running_ = 0;
};

} // namespace bench
