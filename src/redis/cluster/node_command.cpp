// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/node_command.hpp"

#include "redis/operations/client_operation.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

class node_command final : public client_operation
{
public:
    node_command(operation_client& node, std::vector<std::string> words, lease_clock::duration timeout,
        std::function<void(const reply&, failure_ptr)> done)
        : client_operation(node), words_(std::move(words)), done_(std::move(done))
    {
        is_pinned = true;
        if (timeout != lease_clock::duration::zero())
            deadline = lease_clock::now() + timeout;
    }

    void write(boost::redis::request& request) override
    {
        request.push_range(words_.front(), words_.begin() + 1, words_.end());
    }

private:
    void complete(delivery status, failure_ptr failure) override
    {
        if (status == delivery::answered)
            done_(replies.front(), nullptr);
        else
            done_({}, std::move(failure));
    }

    const std::vector<std::string> words_;
    const std::function<void(const reply&, failure_ptr)> done_;
};

} // namespace

operation_ptr make_node_command(operation_client& node, std::vector<std::string> words, lease_clock::duration timeout,
    std::function<void(const reply&, failure_ptr)> done)
{
    return operation_ptr(new node_command(node, std::move(words), timeout, std::move(done)));
}

} // namespace colock::inline v0::redis::detail
