// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/node_conversions.hpp"

#include <zookeeper/zookeeper.h>

namespace colock::inline v0::zookeeper::detail {

node_stat stat_of(const Stat& from) noexcept
{
    return {.created_in = from.czxid,
        .modified_in = from.mzxid,
        .created_ms = from.ctime,
        .modified_ms = from.mtime,
        .ephemeral_owner = from.ephemeralOwner,
        .version = from.version,
        .children = from.numChildren,
        .children_modified_in = from.pzxid};
}

int mode_of(node_kind lifetime) noexcept
{
    switch (lifetime) {
    case node_kind::persistent:
        return ZOO_PERSISTENT;
    case node_kind::container:
        return ZOO_CONTAINER;
    case node_kind::ephemeral:
        return ZOO_EPHEMERAL;
    case node_kind::ephemeral_sequential:
        return ZOO_EPHEMERAL_SEQUENTIAL;
    }
    return ZOO_PERSISTENT;
}

} // namespace colock::inline v0::zookeeper::detail
