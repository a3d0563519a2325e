// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace colock::testing {

/// A lock library of another language that uses `SET key token NX PX ttl`.
struct other_library
{
    /// Name of its test suite.
    const char* name;
    const char* program;
    /// Package that has to be installed in the folder of the Node modules. Null for Python.
    const char* module;
};

/// The server or the cluster that colock and another library use.
class common_store
{
public:
    common_store() = default;
    common_store(const common_store&) = delete;
    common_store& operator=(const common_store&) = delete;
    virtual ~common_store() = default;

    /// URL for colock.
    [[nodiscard]] virtual std::string url() = 0;
    /// Port of a server for the other library.
    [[nodiscard]] virtual std::uint16_t port() = 0;
    /// Whether the other library has to use its client for a cluster.
    [[nodiscard]] virtual bool is_cluster() = 0;
    virtual std::string get(const std::string& key) = 0;
    virtual void set(const std::string& key, const std::string& value) = 0;
};

/// Registers a test suite in which the library and colock exclude each other. The suite is skipped if the library is
/// not installed.
void add_encounters(const other_library& other, const std::function<std::unique_ptr<common_store>()>& make_store);

} // namespace colock::testing
