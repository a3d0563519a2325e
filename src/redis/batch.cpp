// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/batch.hpp"

#include "redis/failures.hpp"

namespace colock::redis::detail {

void batch::add(operation_ptr added)
{
    slots_.push_back({std::move(added)});
}

void batch::complete(std::string_view fence_key, std::string_view probe_key)
{
    request_.get_config() = once;
    write_releases(probe_key);
    for (auto& each : slots_) {
        if (each.release != 0)
            continue;
        const auto before = request_.get_expected_responses();
        each.owner->write(request_);
        each.expected = request_.get_expected_responses() - before;
        each.fence = each.owner->wants_fence() ? ++fences_ : 0;
    }
    if (fences_ > 0)
        request_.push("INCRBY", fence_key, fences_);
    skip_releases();
}

void batch::write_releases(std::string_view probe_key)
{
    auto form = script::form::digest;
    for (auto& each : slots_) {
        if (words_.size() < 2 * (releases_ + 1))
            words_.resize(2 * (releases_ + 1));
        if (!each.owner->is_release(words_[2 * releases_], words_[2 * releases_ + 1]))
            continue;
        each.release = ++releases_;
        if (each.owner->release_form() == script::form::whole)
            form = script::form::whole;
    }
    if (releases_ < 2) {
        for (auto& each : slots_)
            each.release = 0;
        releases_ = 0;
        return;
    }
    std::vector<std::string_view> arguments;
    arguments.reserve(2 * releases_ + 3);
    const auto& script = scripts::get().release_many;
    const auto keys = std::to_string(releases_ + 1);
    arguments.push_back(form == script::form::digest ? std::string_view(script.digest()) : script.text());
    arguments.push_back(keys);
    for (std::size_t i = 0; i < releases_; ++i)
        arguments.emplace_back(words_[2 * i]);
    arguments.push_back(probe_key);
    for (std::size_t i = 0; i < releases_; ++i)
        arguments.emplace_back(words_[2 * i + 1]);
    request_.push_range(form == script::form::digest ? "EVALSHA" : "EVAL", arguments);
}

void batch::skip_releases() noexcept
{
    while (current_ < slots_.size() && slots_[current_].release != 0)
        ++current_;
}

void batch::set_link(std::uint64_t link) noexcept
{
    for (auto& slot : slots_)
        slot.owner->sent_on = link;
}

void batch::on_node(const boost::redis::resp3::node_view& node)
{
    if (releases_ > 0 && !released_read_) {
        released_.add(node);
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
    if (releases_ > 0 && !released_read_) {
        released_read_ = true;
    } else if (current_ == slots_.size()) {
        fence_read_ = true;
    } else if (++complete_ == slots_[current_].expected) {
        ++current_;
        complete_ = 0;
        skip_releases();
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
    if (slots_[index].release != 0)
        return released_read_;
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

void batch::close_gaps()
{
    std::erase_if(slots_, [](const slot& each) { return !each.owner; });
}

void batch::finish(const failure_ptr& why)
{
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        auto owner = std::move(slots_[i].owner);
        if (!owner)
            continue;
        auto& ended = *owner;
        if (const auto which = slots_[i].release; which != 0 && released_read_)
            ended.replies.push_back(released_.is(reply::kind::array) ? released_.at(which - 1) : released_);
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
    releases_ = 0;
    released_ = {};
    released_read_ = false;
    fences_ = 0;
    fence_ = {};
    fence_read_ = false;
    refused_as_replica_ = false;
}

} // namespace colock::redis::detail
