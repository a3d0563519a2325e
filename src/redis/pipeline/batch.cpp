// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/batch.hpp"

#include "redis/failures.hpp"

#include <algorithm>

namespace colock::redis::detail {

void joint_script::clear() noexcept
{
    count = 0;
    used = 0;
    form = script::form::digest;
    answer.clear();
    read = false;
}

void batch::add(operation_ptr added)
{
    settle_deadlines();
    earliest_ = std::min(earliest_, added->deadline);
    slots_.push_back({std::move(added)});
}

void batch::complete(std::string_view fence_key, std::string_view probe_key)
{
    request_.get_config() = once;
    settle_deadlines();
    join(fence_key, probe_key);
    for (auto& each : slots_) {
        if (each.joint)
            continue;
        const auto before = request_.get_expected_responses();
        each.owner->write(request_);
        each.expected = request_.get_expected_responses() - before;
        each.fence = each.owner->wants_fence() ? ++fences_ : 0;
    }
    if (fences_ > 0)
        request_.push("INCRBY", fence_key, fences_);
    skip_joint();
}

void batch::join(std::string_view fence_key, std::string_view probe_key)
{
    for (auto& each : slots_) {
        each.joint = each.owner->join(joint_);
        if (each.joint)
            each.place = each.joint->count - 1;
    }
    // One alone is cheaper by itself. But what the server did not know of a joint script has to reach it: those that
    // were refused together may travel apart.
    for (auto* each : {&joint_.releases, &joint_.group_releases, &joint_.hand_overs}) {
        if (each->count != 1)
            continue;
        const auto alone = std::ranges::find(slots_, each, &slot::joint);
        if (each->form == script::form::whole && alone->owner->joined)
            continue;
        each->clear();
        alone->joint = nullptr;
    }
    push(joint_.releases, scripts::get().release_many, {probe_key});
    push(joint_.group_releases, scripts::get().release_members, {probe_key});
    push(joint_.hand_overs, scripts::get().hand_over, {fence_key});
}

void batch::push(const joint_script& joint, const script& which, std::initializer_list<std::string_view> last_keys)
{
    if (joint.count == 0)
        return;
    const auto keys = std::to_string(joint.count + last_keys.size());
    const bool whole = joint.form == script::form::whole;
    words_ = {whole ? which.text() : std::string_view(which.digest()), keys};
    words_.insert(words_.end(), joint.keys.begin(), joint.keys.begin() + static_cast<std::ptrdiff_t>(joint.count));
    words_.insert(words_.end(), last_keys);
    words_.insert(
        words_.end(), joint.arguments.begin(), joint.arguments.begin() + static_cast<std::ptrdiff_t>(joint.used));
    request_.push_range(whole ? "EVAL" : "EVALSHA", words_);
}

joint_script* batch::reading() noexcept
{
    for (auto* each : {&joint_.releases, &joint_.group_releases, &joint_.hand_overs}) {
        if (each->count > 0 && !each->read)
            return each;
    }
    return nullptr;
}

void batch::skip_joint() noexcept
{
    while (current_ < slots_.size() && slots_[current_].joint)
        ++current_;
}

void batch::set_link(std::uint64_t server_connection) noexcept
{
    for (auto& slot : slots_)
        slot.owner->sent_on = server_connection;
}

void batch::on_node(const boost::redis::resp3::node_view& node)
{
    if (auto* const joint = reading()) {
        joint->answer.add(node);
    } else if (current_ == slots_.size()) {
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
    if (auto* const joint = reading()) {
        joint->read = true;
    } else if (current_ == slots_.size()) {
        fence_read_ = true;
    } else if (++complete_ == slots_[current_].expected) {
        ++current_;
        complete_ = 0;
        skip_joint();
    }
}

void batch::postpone(lease_clock::duration by) noexcept
{
    if (earliest_ == lease_clock::time_point::max())
        return;
    earliest_ += by;
    postponed_ += by;
}

void batch::settle_deadlines() noexcept
{
    if (postponed_ == lease_clock::duration::zero())
        return;
    for (auto& slot : slots_) {
        if (slot.owner)
            slot.owner->deadline += postponed_;
    }
    postponed_ = lease_clock::duration::zero();
}

bool batch::is_answered(std::size_t index) const noexcept
{
    if (const auto* const joint = slots_[index].joint)
        return joint->read;
    return index < current_ && (slots_[index].fence == 0 || fence_read_);
}

template <class Predicate>
std::vector<operation_ptr> batch::take_if(Predicate is_taken)
{
    std::vector<operation_ptr> taken;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].owner && is_taken(i))
            taken.push_back(std::move(slots_[i].owner));
    }
    return taken;
}

std::vector<operation_ptr> batch::take_overdue(lease_clock::time_point now)
{
    std::vector<operation_ptr> overdue;
    if (is_in_time(now))
        return overdue;
    settle_deadlines();
    earliest_ = lease_clock::time_point::max();
    // One whose replies have all arrived ends with them.
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!slots_[i].owner || is_answered(i))
            continue;
        if (slots_[i].owner->deadline <= now)
            overdue.push_back(std::move(slots_[i].owner));
        else
            earliest_ = std::min(earliest_, slots_[i].owner->deadline);
    }
    return overdue;
}

std::vector<operation_ptr> batch::take_unwanted()
{
    return take_if([&](std::size_t i) { return slots_[i].owner->unwanted(); });
}

std::vector<operation_ptr> batch::take_all()
{
    return take_if([](std::size_t) { return true; });
}

void batch::close_gaps()
{
    std::erase_if(slots_, [](const slot& each) { return !each.owner; });
}

void batch::finish(const failure_ptr& why)
{
    settle_deadlines();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        auto owner = std::move(slots_[i].owner);
        if (!owner)
            continue;
        auto& ended = *owner;
        ended.joined = slots_[i].joint != nullptr;
        if (auto* const joint = slots_[i].joint; joint && joint->read)
            ended.replies.push_back(joint->take(slots_[i].place));
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
    earliest_ = lease_clock::time_point::max();
    postponed_ = lease_clock::duration::zero();
    current_ = 0;
    complete_ = 0;
    joint_.releases.clear();
    joint_.group_releases.clear();
    joint_.hand_overs.clear();
    fences_ = 0;
    fence_ = {};
    fence_read_ = false;
    refused_as_replica_ = false;
}

} // namespace colock::redis::detail
