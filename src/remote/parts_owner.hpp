// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/connection_plan.hpp"

#include <colock/adapter.hpp>

#include <memory>

namespace colock::remote {

/// The client, as its parts see it: they work on one strand, and none knows of those above it, which use it.
class parts_owner : public std::enable_shared_from_this<parts_owner>
{
public:
    /// The part, for a handler: keeps all of them.
    template <class Part>
    [[nodiscard]] std::shared_ptr<Part> keep(Part& part)
    {
        return {shared_from_this(), &part};
    }

    /// For the connection for commands.
    [[nodiscard]] virtual connection_plan::demand demand() const noexcept = 0;
    /// Requests may be sent, on a connection that is a new one.
    virtual void opened() = 0;
    /// No other attempt to connect would help: ends what waits for one, and lets the session know that it rests.
    virtual void refuse(const failure_ptr& why) = 0;
    /// Something may be due sooner than before.
    virtual void arm_turn() = 0;
    /// A connection has ended, or somebody was told of an end: a close may be complete.
    virtual void finish_close() noexcept = 0;

protected:
    parts_owner() = default;
    ~parts_owner() = default;
};

} // namespace colock::remote
