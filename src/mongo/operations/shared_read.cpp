// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/shared_read.hpp"

#include "mongo/commands/query.hpp"
#include "mongo/commands/statement_errors.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace colock::inline v0::mongo::detail {

namespace {

/// Maximum number of keys that one `find` reads. Equal to the maximum number of statements of an update.
constexpr std::size_t max_readers = 64;

} // namespace

void key_reader::begin()
{
    owner_->read(*this);
}

void key_reader::fail(delivery request_state, failure_ptr failure)
{
    if (const auto own_read = std::exchange(read_, {}).lock())
        own_read->remove(*this);
    command_operation::fail(request_state, std::move(failure));
}

void key_reader::on_reply_full()
{
    reads_alone_ = true;
    begin();
}

void shared_read::start()
{
    send(owner_->get_primary().make_clock_command(handler_for(&shared_read::on_clock)));
}

bool shared_read::accepts_readers() const noexcept
{
    return is_open_ && readers_.size() < max_readers;
}

void shared_read::remove(const key_reader& which)
{
    // A reader has waited for as long as it may, so the connection may be dead. Later readers use another one.
    is_open_ = false;
    for (auto& each : readers_) {
        if (each == &which)
            each.reset();
    }
    const auto is_removed = [](const reader_ptr& each) { return !each; };
    if (std::ranges::all_of(readers_, is_removed))
        chain_.end(owner_->get_primary());
}

void shared_read::send(const std::shared_ptr<callback_command>& command)
{
    chain_.ask(owner_->get_primary(), command);
}

callback_command::handler shared_read::handler_for(void (shared_read::*then)(const answer&))
{
    return [self = shared_from_this(), then](const answer& result) {
        const command_chain::answer_scope guard(self->chain_);
        if (judge(result) == verdict::done)
            (self.get()->*then)(result);
        else
            self->fail_all(result);
    };
}

void shared_read::on_clock(const answer& result)
{
    is_open_ = false;
    if (const auto refusal = owner_->get_primary().update_clock(result)) {
        fail_all(*refusal);
        return;
    }
    std::vector<std::string_view> keys;
    for (const auto& each : readers_) {
        if (each)
            keys.push_back(each->key());
    }
    send(std::make_shared<callback_command>(owner_->config().database,
        find_command(owner_->config(), keys_query(keys), static_cast<std::int64_t>(keys.size())),
        handler_for(&shared_read::on_documents)));
}

void shared_read::on_documents(const answer& result)
{
    std::vector<bool> is_found(readers_.size());
    for_each_document(result.reply, [&](const bson_iter_t& each) {
        const auto key = key_of(each);
        for (std::size_t i = 0; i < readers_.size(); ++i) {
            // This reader may be removed while others are notified.
            auto reader = std::exchange(readers_[i], nullptr);
            if (reader && reader->key() == key) {
                is_found[i] = true;
                if (reader->on_document(result, each))
                    continue;
            }
            readers_[i] = std::move(reader);
        }
    });
    const bool is_reply_full = may_be_full(result.reply);
    bool is_complete = true;
    for (std::size_t i = 0; i < readers_.size(); ++i) {
        auto reader = std::exchange(readers_[i], nullptr);
        if (!reader)
            continue;
        if (!is_found[i] && is_reply_full) {
            reader->on_reply_full();
            continue;
        }
        readers_[i] = std::move(reader);
        is_complete = false;
    }
    if (!is_complete)
        confirm();
}

void shared_read::confirm()
{
    send(std::make_shared<callback_command>(owner_->config().database, confirm_command(owner_->config()),
        [self = shared_from_this()](const answer& result) {
            const command_chain::answer_scope guard(self->chain_);
            const statement_errors errors(result.reply);
            const auto* const error = errors.find(0);
            const answer& confirmation = error ? *error : result;
            if (judge(confirmation) == verdict::done || self->owner_->get_primary().accepts_unconfirmed(confirmation))
                self->on_confirmed();
            else
                self->fail_all(confirmation);
        }));
}

void shared_read::on_confirmed()
{
    for (auto& each : readers_) {
        if (const auto reader = std::exchange(each, nullptr))
            reader->on_not_held();
    }
}

void shared_read::fail_all(const answer& result)
{
    is_open_ = false;
    for (auto& each : readers_) {
        if (const auto reader = std::exchange(each, nullptr))
            reader->on_error(result);
    }
}

} // namespace colock::inline v0::mongo::detail
