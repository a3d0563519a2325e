// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/settings.hpp"
#include "mongo/topology/primary.hpp"
#include "remote/requests/client_base.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

class batchable_operation;
class key_reader;

/// The part of the client that its operations use.
///
/// Thread safety: `config` and `name` may be called from any thread; all other functions belong to the strand.
class operation_client : public remote::client_base
{
public:
    [[nodiscard]] const settings& config() const noexcept { return config_; }
    /// Name by which this adapter marks the documents of keys that it waits for.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    [[nodiscard]] virtual primary& get_primary() noexcept = 0;
    /// Returns a number greater than all before. A server that has carried out a request of a claim carries out no
    /// request of the claim with a lower number afterwards.
    [[nodiscard]] std::int64_t next_request() noexcept { return ++requests_; }
    /// Sends the operation in a batch with other operations that are started at the same time.
    virtual void add_to_batch(batchable_operation& operation) = 0;
    /// Reads the key of the operation together with keys that other operations read at the same time.
    virtual void read(key_reader& reader) = 0;

protected:
    operation_client(settings config, std::string name, remote::request_queue::callbacks callbacks)
        : client_base(config.deadlines(), {}, std::move(callbacks)), config_(std::move(config)), name_(std::move(name))
    {
    }

    const settings config_;

private:
    const std::string name_;
    std::int64_t requests_ = 0;
};

} // namespace colock::inline v0::mongo::detail
