// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "settings.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace prove {

/// The promises that a fault suspends. All others must be kept during and after the fault.
enum class suspension
{
    /// Nothing.
    none,
    /// Locks that were granted before the end of the fault may be lost without a notice.
    locks,
    /// The same; and locks that were released before the end of the fault may be back until their ttl has passed.
    locks_and_releases,
};
[[nodiscard]] const char* to_string(suspension value) noexcept;

/// A fault of one or all servers.
struct server_fault
{
    const char* name;
    suspension suspended = suspension::none;
    /// Whether a lock without ttl can remain after this fault, because a release was undone or cannot be completed.
    bool keeps_locks = false;
    std::function<void()> begin;
    std::function<void()> end;
    /// Completes the repair after the end of the fault, while no promise is suspended; may be empty.
    std::function<void()> repair{};
};

/// The servers of one backend.
class servers
{
public:
    virtual ~servers() = default;

    /// Returns the ports of the servers, on 127.0.0.1.
    [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
    /// Returns the URL of the backend if its servers are reached by these ports.
    [[nodiscard]] virtual std::string url(const std::vector<std::uint16_t>& ports) const = 0;
    /// The same for one of the processes, which a sabotage may give another URL.
    [[nodiscard]] virtual std::string url_of_process(
        const std::vector<std::uint16_t>& ports, std::uint32_t /*process*/) const
    {
        return url(ports);
    }
    /// Returns the faults of this backend. Each of them needs the servers in their usual state.
    [[nodiscard]] virtual std::vector<server_fault> faults(random_numbers& draw) = 0;
    /// Returns what remains on the servers although no lock is held.
    [[nodiscard]] virtual std::vector<std::string> residue() { return {}; }
};

/// Starts the servers of a backend.
/// \param sabotage its name, if any; most of them are not done by the servers
/// \throws std::runtime_error if the backend is unknown or does not start
[[nodiscard]] std::unique_ptr<servers> start_servers(const std::string& backend, const std::string& sabotage);

} // namespace prove
