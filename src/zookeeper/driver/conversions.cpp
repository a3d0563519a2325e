// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/conversions.hpp"

#include <zookeeper/zookeeper.h>

namespace colock::inline v0::zookeeper::detail {

status status_of(int code) noexcept
{
    switch (code) {
    case ZOK:
        return status::ok;
    case ZNONODE:
        return status::no_node;
    case ZNODEEXISTS:
        return status::node_exists;
    case ZNOTEMPTY:
        return status::not_empty;
    case ZBADVERSION:
        return status::bad_version;
    case ZNOAUTH:
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
        return status::access_denied;
    // The server has not carried out a request that it throttled.
    case ZTHROTTLEDOP:
        return status::unsent;
    case ZSESSIONEXPIRED:
        return status::ended;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZRUNTIMEINCONSISTENCY:
    case ZDATAINCONSISTENCY:
    case ZMARSHALLINGERROR:
    case ZSYSTEMERROR:
    case ZSESSIONMOVED:
    case ZCLOSING:
        return status::unanswered;
    default:
        return status::refused;
    }
}

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
