// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/zk_client.hpp"

#include <string>
#include <vector>

#include <zookeeper/zookeeper.h>

namespace colock::inline v0::zookeeper::detail {

/// A transaction in the driver's form, with the memory that the driver writes the results to.
class transaction final : public request
{
public:
    /// \param replaced request that this transaction replaces: its completion is moved, and its size is copied
    /// \param changes has to live until the transaction was sent
    /// \param access rights of created nodes; has to live as long as `changes`
    transaction(request& replaced, const std::vector<change>& changes, const ACL_vector& access);

    /// Passes the transaction to the driver, and returns the driver's code. If the code is ZOK, this object has to live
    /// until the driver has called `completed` with it, as a `request*`. No other call of the driver may be running.
    [[nodiscard]] int send(zhandle_t* driver, void_completion_t completed);
    /// Stores the driver's results as the replies to the changes.
    void take_results();

private:
    std::vector<zoo_op_t> operations_;
    std::vector<zoo_op_result_t> results_;
    std::vector<std::string> paths_;
    std::vector<Stat> stats_;
};

} // namespace colock::inline v0::zookeeper::detail
