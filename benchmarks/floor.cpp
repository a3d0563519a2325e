// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "floor.hpp"

#include <unordered_map>

namespace asio = boost::asio;

namespace bench {
namespace {

class map_store : public floor_store
{
public:
    asio::awaitable<std::uint64_t> insert(std::string key) override
    {
        const auto [position, inserted] = map_.try_emplace(std::move(key), counter_ + 1);
        if (inserted)
            ++counter_;
        co_return position->second;
    }
    asio::awaitable<bool> erase(const std::string& key) override { co_return map_.erase(key) != 0; }

private:
    std::unordered_map<std::string, std::uint64_t> map_;
    std::uint64_t counter_ = 0;
};

} // namespace

std::unique_ptr<floor_store> make_floor()
{
    return std::make_unique<map_store>();
}

} // namespace bench
