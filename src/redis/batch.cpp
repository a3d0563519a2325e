// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/batch.hpp"

#include "redis/failures.hpp"

namespace colock::redis::detail {

void batch::add(operation_ptr added)
{
    if (slots_.empty())
        request_.get_config() = once;
    const auto before = request_.get_expected_responses();
    added->write(request_);
    const auto expected = request_.get_expected_responses() - before;
    slots_.push_back({std::move(added), expected});
}

void batch::set_link(std::uint64_t link) noexcept
{
    for (auto& slot : slots_)
        slot.owner->sent_on = link;
}

void batch::on_node(const boost::redis::resp3::node_view& node)
{
    if (current_ == slots_.size())
        return;
    if (auto& owner = slots_[current_].owner) {
        if (owner->replies.size() <= complete_)
            owner->replies.resize(slots_[current_].expected);
        owner->replies[complete_].add(node);
    }
    using boost::redis::resp3::type;
    if ((node.data_type == type::simple_error || node.data_type == type::blob_error) && is_readonly(node.value))
        refused_as_replica_ = true;
}

void batch::on_reply() noexcept
{
    if (current_ == slots_.size() || ++complete_ < slots_[current_].expected)
        return;
    ++current_;
    complete_ = 0;
}

void batch::postpone(lease_clock::duration by) noexcept
{
    for (auto& slot : slots_) {
        if (slot.owner)
            slot.owner->deadline += by;
    }
}

std::vector<operation_ptr> batch::take_overdue(lease_clock::time_point now)
{
    std::vector<operation_ptr> overdue;
    // One whose replies have all arrived ends with them.
    for (auto i = current_; i < slots_.size(); ++i) {
        if (slots_[i].owner && slots_[i].owner->deadline <= now)
            overdue.push_back(std::move(slots_[i].owner));
    }
    return overdue;
}

std::vector<operation_ptr> batch::take_all()
{
    std::vector<operation_ptr> all;
    for (auto& slot : slots_) {
        if (slot.owner)
            all.push_back(std::move(slot.owner));
    }
    return all;
}

void batch::rewrite()
{
    auto kept = take_all();
    clear();
    for (auto& each : kept)
        add(std::move(each));
}

void batch::finish(const failure_ptr& why)
{
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        auto owner = std::move(slots_[i].owner);
        if (!owner)
            continue;
        auto& ended = *owner;
        if (i < current_)
            ended.end(std::move(owner), delivery::answered, nullptr);
        else
            ended.end(std::move(owner), delivery::unanswered, why);
    }
}

void batch::clear()
{
    request_.clear();
    slots_.clear();
    current_ = 0;
    complete_ = 0;
    refused_as_replica_ = false;
}

} // namespace colock::redis::detail
