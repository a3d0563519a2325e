// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "intercepting_proxy.hpp"
#include "mongo_fixture.hpp"

#include <chrono>
#include <string>

namespace colock::testing {

/// Simulates two members of a replica set, of which one is the primary. Both forward commands to one server.
struct two_members : mongo_fixture
{
    two_members()
    {
        for (auto* const each : {&first, &second})
            each->on_hello(
                [this, each](const mongo::detail::document& said) { return hello_of(each == primary, said); });
    }

    void step_down() { primary = &second; }

    [[nodiscard]] std::string url() const
    {
        return "mongodb://" + name(first) + ',' + name(second) + "/?replicaSet=rs0";
    }

    intercepting_proxy first{io, server->port()};
    intercepting_proxy second{io, server->port()};
    intercepting_proxy* primary = &first;

private:
    static std::string name(const intercepting_proxy& each) { return "127.0.0.1:" + std::to_string(each.port()); }
    [[nodiscard]] mongo::detail::document hello_of(bool writes, const mongo::detail::document& said) const
    {
        using namespace std::string_literals;
        mongo::detail::document made;
        bson_copy_to_excluding_noinit(said.get(), made.get(), "isWritablePrimary", "ismaster", "secondary", "setName",
            "hosts", "me", "primary", nullptr);
        const auto more = mongo::detail::document::from_json(
            R"({"isWritablePrimary":)"s + (writes ? "true" : "false") + R"(,"ismaster":)" +
            (writes ? "true" : "false") + R"(,"secondary":)" + (writes ? "false" : "true") +
            R"(,"setName":"rs0","hosts":[")" + name(first) + R"(",")" + name(second) + R"("],"primary":")" +
            name(*primary) + "\"}");
        bson_concat(made.get(), more.get());
        return made;
    }
};

} // namespace colock::testing
