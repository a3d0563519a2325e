// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "settings.hpp"

#include <colock/clock.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace storm {

namespace asio = boost::asio;
using colock::lease_clock;

asio::awaitable<void> sleep(lease_clock::duration span);

/// Acquires locks at random until `end`, and then shuts its locker down. Throws if a call has failed in a way that a
/// fault does not explain.
/// \param log the file to which the holds are written
void run_client(const settings& how, std::uint32_t seed, const std::string& url, const std::filesystem::path& log,
    lease_clock::time_point end);

} // namespace storm
