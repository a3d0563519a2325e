// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The plain layout together with lock libraries of other languages, on the same keys of one server.
#include "encounters.hpp"
#include "server.hpp"

#include <memory>
#include <string>

namespace colock::testing {
namespace {

class common_server final : public common_store
{
public:
    std::string url() override { return server_.url(); }
    std::uint16_t port() override { return server_.port(); }
    bool is_cluster() override { return false; }
    std::string get(const std::string& key) override { return server_({"GET", key}); }
    void set(const std::string& key, const std::string& value) override { server_({"SET", key, value}); }

private:
    redis_server server_;
};

class registration
{
public:
    registration()
    {
        for (const other_library& each : {
                 other_library{"redis_beside_ioredis_lock", "ioredis-lock.js", "@microfleet/ioredis-lock"},
                 other_library{"redis_beside_redlock", "redlock.js", "redlock"},
                 other_library{"redis_beside_locco", "locco.js", "@kontsedal/locco"},
                 other_library{"redis_beside_redis_py", "redis_py.py", nullptr},
             })
            add_encounters(each, [] { return std::make_unique<common_server>(); });
    }
};

const registration suites;

} // namespace
} // namespace colock::testing
