// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "locker_fixture.hpp"
#include "support/faulty_proxy.hpp"

#include <memory>

namespace colock::testing {

/// Lockers that are connected to a server, and others behind a link that can fail.
struct one_server : locker_fixture
{
    one_server() : one_server(std::make_unique<zookeeper_server>()) {}
    explicit one_server(std::unique_ptr<zookeeper_server> only)
        : locker_fixture(zookeeper_url(only->port()), [port = only->port()] { return port; }), server(std::move(only)),
          link(server->port())
    {
    }

    locker& add_linked(std::chrono::milliseconds session_timeout)
    {
        return add(session_timeout, zookeeper_url(link.port()));
    }

    std::unique_ptr<zookeeper_server> server;
    faulty_proxy link;
    grant_checker seen;
};

} // namespace colock::testing
