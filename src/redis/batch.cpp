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
    const auto fence = added->wants_fence() ? ++fences_ : 0;
    slots_.push_back({std::move(added), expected, fence});
}

void batch::complete(std::string_view fence_key)
{
    if (fences_ > 0)
        request_.push("INCRBY", fence_key, fences_);
}

void batch::set_link(std::uint64_t link) noexcept
{
    for (auto& slot : slots_)
        slot.owner->sent_on = link;
}

void batch::on_node(const boost::redis::resp3::node_view& node)
{
    if (current_ == slots_.size()) {
        if (!fence_read_)
            fence_.add(node);
    } else if (auto& owner = slots_[current_].owner) {
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
    if (current_ == slots_.size()) {
        fence_read_ = true;
    } else if (++complete_ == slots_[current_].expected) {
        ++current_;
        complete_ = 0;
    }
}

void batch::postpone(lease_clock::duration by) noexcept
{
    for (auto& slot : slots_) {
        if (slot.owner)
            slot.owner->deadline += by;
    }
}

bool batch::is_answered(std::size_t index) const noexcept
{
    return index < current_ && (slots_[index].fence == 0 || fence_read_);
}

std::vector<operation_ptr> batch::take_overdue(lease_clock::time_point now)
{
    std::vector<operation_ptr> overdue;
    // One whose replies have all arrived ends with them.
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].owner && !is_answered(i) && slots_[i].owner->deadline <= now)
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
        if (const auto which = slots_[i].fence; which != 0 && fence_read_) {
            ended.fence.what = fence_.what;
            ended.fence.number = fence_.number - (fences_ - which);
            if (fence_.is_error())
                ended.fence.text = fence_.text;
        }
        if (is_answered(i))
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
    fences_ = 0;
    fence_ = {};
    fence_read_ = false;
    refused_as_replica_ = false;
}

} // namespace colock::redis::detail
