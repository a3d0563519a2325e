// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "virtual_fixture.hpp"

#include <initializer_list>
#include <utility>

namespace colock::testing {

/// Sets what the backend reports for these capabilities. Creates the locker again, because a locker reads the
/// capabilities in its constructor.
inline void set_capabilities(virtual_fixture& env, bool fifo, bool several, locker_options options = {})
{
    auto supported = env.script->traits().capabilities;
    supported.fifo = fifo;
    supported.create_all = several;
    env.script->set_capabilities(supported);
    env.locker.emplace(env.backend(), std::move(options));
}

/// Makes the backend report that it lacks these capabilities. Creates the locker again.
inline void disable(
    virtual_fixture& env, std::initializer_list<bool capabilities::*> missing, locker_options options = {})
{
    auto supported = env.script->traits().capabilities;
    for (const auto each : missing)
        supported.*each = false;
    env.script->set_capabilities(supported);
    env.locker.emplace(env.backend(), std::move(options));
}

/// Makes the backend report that it cannot take several locks in one step.
inline void disable_create_all(virtual_fixture& env, bool fifo = true, locker_options options = {})
{
    set_capabilities(env, fifo, false, std::move(options));
}

} // namespace colock::testing
