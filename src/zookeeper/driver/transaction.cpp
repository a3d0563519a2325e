// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/transaction.hpp"

#include "zookeeper/driver/node_conversions.hpp"
#include "zookeeper/driver/status.hpp"

#include <cstddef>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

transaction::transaction(request& replaced, const std::vector<change>& changes, const ACL_vector& access)
    : request(std::move(replaced.done), true), operations_(changes.size()), results_(changes.size()),
      paths_(changes.size()), stats_(changes.size())
{
    // Maximum size of the number that the server appends: at most eleven characters, and a terminating zero.
    constexpr std::size_t max_suffix_size = 12;
    size = replaced.size;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto& each = changes[i];
        auto& operation = operations_[i];
        const auto length = static_cast<int>(each.data.size());
        switch (each.type) {
        case change::kind::create:
            paths_[i].resize(each.path.size() + max_suffix_size);
            zoo_create_op_init(&operation, each.path.c_str(), each.data.data(), length, &access, mode_of(each.lifetime),
                paths_[i].data(), static_cast<int>(paths_[i].size()));
            break;
        case change::kind::remove:
            zoo_delete_op_init(&operation, each.path.c_str(), -1);
            break;
        case change::kind::write:
            zoo_set_op_init(&operation, each.path.c_str(), each.data.data(), length, -1, &stats_[i]);
            break;
        case change::kind::check:
            zoo_check_op_init(&operation, each.path.c_str(), -1);
            break;
        }
    }
}

int transaction::send(zhandle_t* driver, void_completion_t completed)
{
    return zoo_amulti(driver, static_cast<int>(operations_.size()), operations_.data(), results_.data(), completed,
        static_cast<request*>(this));
}

void transaction::take_results()
{
    answer.members.reserve(results_.size());
    for (std::size_t i = 0; i < results_.size(); ++i) {
        const auto own = results_[i].err;
        answer.members.push_back(
            {.outcome = status_of(own), .code = own, .text = paths_[i].c_str(), .stat = stat_of(stats_[i])});
    }
}

} // namespace colock::inline v0::zookeeper::detail
