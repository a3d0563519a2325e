// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/status.hpp"

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

} // namespace colock::inline v0::zookeeper::detail
