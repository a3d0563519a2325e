// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/connect.hpp>
#ifdef COLOCK_BUILT_REDIS
#include <colock/redis/adapter.hpp>
#endif
#ifdef COLOCK_BUILT_ZOOKEEPER
#include <colock/zookeeper/adapter.hpp>
#endif
#ifdef COLOCK_BUILT_MONGO
#include <colock/mongo/adapter.hpp>
#endif

#include <vector>

namespace tools {

/// The backends that this build contains, for colock::make_adapter. A build leaves out a backend whose driver is not
/// installed. The program is linked with colock_link_built_backends.
inline std::vector<colock::url_backend> built_backends()
{
    return {
#ifdef COLOCK_BUILT_REDIS
        colock::redis::by_url,
#endif
#ifdef COLOCK_BUILT_ZOOKEEPER
        colock::zookeeper::by_url,
#endif
#ifdef COLOCK_BUILT_MONGO
        colock::mongo::by_url,
#endif
    };
}

} // namespace tools
