// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The plain layout together with lock libraries of other languages, on the same keys of a cluster.
#include "cluster.hpp"
#include "integration/redis/encounters.hpp"

#include <memory>
#include <string>

namespace colock::testing {
namespace {

class common_cluster final : public common_store
{
public:
    common_cluster() { servers().clear(); }

    std::string url() override { return servers().url(); }
    std::uint16_t port() override { return servers().node(0).port(); }
    bool is_cluster() override { return true; }
    std::string get(const std::string& key) override { return owner(key)({"GET", key}); }
    void set(const std::string& key, const std::string& value) override { owner(key)({"SET", key, value}); }

private:
    static redis_cluster& servers()
    {
        static redis_cluster all;
        return all;
    }
    static redis_server& owner(const std::string& key) { return servers().node(servers().owner_of(key)); }
};

class registration
{
public:
    registration()
    {
        // redis-py has a lock for clusters. redlock treats a cluster as one server.
        for (const other_library& each : {
                 other_library{"redis_cluster_beside_redis_py", "redis_py.py", nullptr},
                 other_library{"redis_cluster_beside_redlock", "redlock.js", "redlock"},
             })
            add_encounters(each, [] { return std::make_unique<common_cluster>(); });
    }
};

const registration suites;

} // namespace
} // namespace colock::testing
