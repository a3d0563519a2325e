// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

/// Includes the core and the memory adapter. The headers of the other backends are not included.

#include <colock/clock.hpp>
#include <colock/election.hpp>
#include <colock/error.hpp>
#include <colock/fence_gate.hpp>
#include <colock/keys.hpp>
#include <colock/leadership.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/locker.hpp>
#include <colock/lost_reason.hpp>
#include <colock/memory/adapter.hpp>
#include <colock/observer.hpp>
#include <colock/options.hpp>
#include <colock/retry_policy.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/awaitable_adapter.hpp>
#include <colock/spi/context_member.hpp>
#include <colock/stats.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>
#include <colock/with_diagnostics.hpp>
