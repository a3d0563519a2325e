// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <string_view>

namespace colock::testing {

/// A Toxiproxy server between a client and one server on 127.0.0.1.
class toxiproxy
{
public:
    explicit toxiproxy(std::uint16_t upstream);
    toxiproxy(const toxiproxy&) = delete;
    toxiproxy& operator=(const toxiproxy&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// Adds a fault ("toxic"). `stream` is "upstream" (to the server) or "downstream"; `attributes` is JSON.
    void add(std::string_view name, std::string_view type, std::string_view stream, std::string_view attributes);
    void remove(std::string_view name);
    /// If `enabled` is false: closes all connections and refuses new ones.
    void enable(bool enabled);

private:
    void request(std::string_view method, std::string_view path, std::string_view body);

    std::uint16_t control_;
    std::uint16_t port_;
    temporary_folder folder_;
    child_process process_;
};

} // namespace colock::testing
