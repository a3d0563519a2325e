// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "cluster.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

/// A link to each node.
struct links_to_nodes
{
    explicit links_to_nodes(redis_cluster& servers)
    {
        for (std::size_t i = 0; i < redis_cluster::size; ++i) {
            all.push_back(std::make_unique<redis_faulty_proxy>(servers.node(i).port()));
            map[address(servers.node(i).port())] = address(all.back()->port());
        }
    }
    static std::string address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
    [[nodiscard]] std::string url() const
    {
        return "redis+cluster://" + address(all[0]->port()) + "," + address(all[1]->port());
    }

    std::vector<std::unique_ptr<redis_faulty_proxy>> all;
    std::map<std::string, std::string> map;
};

} // namespace colock::testing
