// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/batch.hpp"

#include "redis/failures.hpp"

#include <algorithm>

namespace colock::inline v0::redis::detail {

void batched_script::clear() noexcept
{
    operation_count = 0;
    argument_count = 0;
    form = script::form::digest;
    answer.clear();
    is_read = false;
}

void operation::fail(delivery status, failure_ptr failure)
{
    if (sent_in && sent_in->remove(*this))
        end(delivery::answered, nullptr);
    else
        end(status, std::move(failure));
}

batch::~batch()
{
    // Without memory, a batch may be destroyed before it is sent. Its operations end at their deadlines.
    for (const auto& slot : slots_) {
        if (slot.owner)
            slot.owner->sent_in = nullptr;
    }
}

void batch::add(operation& operation)
{
    operation.sent_in = this;
    operation.index = slots_.size();
    slots_.push_back({&operation});
}

void batch::write_request(const settings& config)
{
    request_.get_config() = request_config;
    if (config.cluster()) {
        for (auto& each : slots_)
            write_for_cluster(each, config);
    } else {
        write_for_server(config);
    }
    if (config.replicas == 0)
        return;
    for (auto& each : slots_) {
        each.needs_replicas = each.owner->needs_replicas();
        if (each.needs_replicas)
            replicas_ = config.replicas;
    }
    if (replicas_ > 0)
        request_.push("WAIT", replicas_, config.replica_timeout.count());
}

void batch::write_for_server(const settings& config)
{
    build_scripts();
    for (auto& each : slots_) {
        if (!each.batched) {
            const auto before = request_.get_expected_responses();
            each.owner->write(request_);
            each.reply_count = request_.get_expected_responses() - before;
        }
        if (const auto count = each.owner->fence_count(); count > 0)
            each.fence = fence_count_ += static_cast<std::int64_t>(count);
    }
    if (fence_count_ > 0)
        request_.push("INCRBY", config.fence_key(std::nullopt), fence_count_);
    skip_batched();
}

void batch::write_for_cluster(slot& each, const settings& config)
{
    auto& owner = *each.owner;
    const auto before = request_.get_expected_responses();
    if (owner.asks) {
        request_.push("ASKING");
        each.skipped = 1;
    }
    owner.write(request_);
    if (const auto count = owner.fence_count(); count > 0 && !owner.asks) {
        request_.push("INCRBY", config.fence_key(owner.slot), count);
        each.has_own_fence = true;
    }
    each.reply_count = request_.get_expected_responses() - before;
}

void batch::build_scripts()
{
    for (auto& each : slots_) {
        each.batched = each.owner->add_to_batch(batched_);
        if (each.batched)
            each.index = each.batched->operation_count - 1;
    }
    // A single operation is cheaper without a batched script. The exception is an operation that was refused because
    // the server did not know the batched script: the whole script has to be sent once, and the refused operations may
    // be in different batches.
    for (auto* each : {&batched_.releases, &batched_.group_releases, &batched_.hand_overs}) {
        if (each->operation_count != 1)
            continue;
        const auto alone = std::ranges::find(slots_, each, &slot::batched);
        if (each->form == script::form::whole && alone->owner->was_batched)
            continue;
        each->clear();
        alone->batched = nullptr;
    }
    push(batched_.releases, scripts::get().release_many);
    push(batched_.group_releases, scripts::get().release_members);
    push(batched_.hand_overs, scripts::get().hand_over);
}

void batch::push(const batched_script& batched, const script& script)
{
    if (batched.operation_count == 0)
        return;
    const auto keys = std::to_string(batched.operation_count);
    const bool whole = batched.form == script::form::whole;
    words_ = {whole ? script.text() : std::string_view(script.digest()), keys};
    words_.insert(words_.end(), batched.keys.begin(),
        batched.keys.begin() + static_cast<std::ptrdiff_t>(batched.operation_count));
    words_.insert(words_.end(), batched.arguments.begin(),
        batched.arguments.begin() + static_cast<std::ptrdiff_t>(batched.argument_count));
    request_.push_range(whole ? "EVAL" : "EVALSHA", words_);
}

batched_script* batch::current_script() noexcept
{
    for (auto* each : {&batched_.releases, &batched_.group_releases, &batched_.hand_overs}) {
        if (each->operation_count > 0 && !each->is_read)
            return each;
    }
    return nullptr;
}

void batch::skip_batched() noexcept
{
    while (current_ < slots_.size() && slots_[current_].batched)
        ++current_;
}

void batch::set_connection(std::uint64_t server_connection) noexcept
{
    for (auto& slot : slots_)
        slot.owner->sent_on = server_connection;
}

void batch::on_node(const boost::redis::resp3::node_view& node)
{
    if (auto* const batched = current_script()) {
        batched->answer.add(node);
    } else if (current_ == slots_.size()) {
        (is_fence_read_ || fence_count_ == 0 ? confirmed_ : fence_).add(node);
    } else if (auto& owner = slots_[current_].owner) {
        const auto& slot = slots_[current_];
        if (owner->replies.empty())
            owner->replies.resize(slot.reply_count - slot.skipped);
        if (complete_replies_ >= slot.skipped)
            owner->replies[complete_replies_ - slot.skipped].add(node);
    }
    using boost::redis::resp3::type;
    if ((node.data_type == type::simple_error || node.data_type == type::blob_error) && is_readonly(node.value))
        refused_as_replica_ = true;
}

void batch::on_reply() noexcept
{
    if (auto* const batched = current_script()) {
        batched->is_read = true;
    } else if (current_ == slots_.size()) {
        (is_fence_read_ || fence_count_ == 0 ? is_confirmation_read_ : is_fence_read_) = true;
    } else if (++complete_replies_ == slots_[current_].reply_count) {
        ++current_;
        complete_replies_ = 0;
        skip_batched();
    }
}

bool batch::is_answered(std::size_t index) const noexcept
{
    const auto& slot = slots_[index];
    const bool is_read = slot.batched ? slot.batched->is_read : index < current_;
    return is_read && (slot.fence == 0 || is_fence_read_) && (!slot.needs_replicas || is_confirmation_read_);
}

failure_ptr batch::unconfirmed() const
{
    // Any other error is that of a server that has just become a replica.
    if (confirmed_.is_error() &&
        (refusal_code(confirmed_.text) == errc::access_denied || is_command_refused(confirmed_.text)))
        return refusal(confirmed_);
    const auto count = confirmed_.is(reply::kind::number) ? confirmed_.number : 0;
    if (count >= static_cast<std::int64_t>(replicas_))
        return nullptr;
    return make_failure(errc::unavailable, std::to_string(count) + " of " + std::to_string(replicas_) +
                                               " replicas have confirmed the request in time; see options::replicas");
}

bool batch::remove(operation& operation)
{
    operation.sent_in = nullptr;
    auto& slot = slots_[operation.index];
    slot.owner.reset();
    operation.was_batched = slot.batched != nullptr;
    if (slot.batched && slot.batched->is_read)
        operation.replies.push_back(slot.batched->take(slot.index));
    operation.unconfirmed = slot.needs_replicas && is_confirmation_read_ ? unconfirmed() : nullptr;
    if (slot.has_own_fence && !operation.replies.empty()) {
        operation.fence = std::move(operation.replies.back());
        operation.replies.pop_back();
    }
    if (slot.fence != 0 && is_fence_read_) {
        operation.fence.type = fence_.type;
        operation.fence.number = fence_.number - (fence_count_ - slot.fence);
        if (fence_.is_error())
            operation.fence.text = fence_.text;
    }
    return is_answered(operation.index);
}

void batch::finish(remote::request_queue& queue)
{
    for (auto& slot : slots_) {
        const auto operation = slot.owner;
        if (!operation || !remove(*operation))
            continue;
        queue.on_ended(*operation);
        operation->end(delivery::answered, nullptr);
    }
}

void batch::clear()
{
    request_.clear();
    slots_.clear();
    current_ = 0;
    complete_replies_ = 0;
    batched_.releases.clear();
    batched_.group_releases.clear();
    batched_.hand_overs.clear();
    fence_count_ = 0;
    fence_ = {};
    is_fence_read_ = false;
    replicas_ = 0;
    confirmed_ = {};
    is_confirmation_read_ = false;
    refused_as_replica_ = false;
}

} // namespace colock::inline v0::redis::detail
