// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "go_between.hpp"
#include "locker_scene.hpp"

#include <chrono>
#include <string>

namespace colock::testing {

/// Two members of a replica set, of which one is the primary. Both pass on what they are asked to one server.
struct two_members : mongo_scene
{
    two_members()
    {
        for (auto* const each : {&first, &second})
            each->introduce(
                [this, each](const mongo::detail::document& said) { return hello_of(each == primary, said); });
    }

    void step_down() { primary = &second; }

    [[nodiscard]] std::string url() const
    {
        return "mongodb://" + name(first) + ',' + name(second) + "/?replicaSet=rs0";
    }

    go_between first{io, server->port()};
    go_between second{io, server->port()};
    go_between* primary = &first;

private:
    static std::string name(const go_between& each) { return "127.0.0.1:" + std::to_string(each.port()); }
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
