// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/connection_setup.hpp"

#include "redis/connection/server_check.hpp"
#include "redis/failures.hpp"
#include "redis/pipeline/exchange.hpp"

#include <colock/clock.hpp>

#include <cstddef>
#include <utility>

namespace colock::redis::detail {

connection_setup::connection_setup(std::shared_ptr<server_connection> on, surroundings around, handler ended)
    : link_(std::move(on)), around_(around), ended_(std::move(ended))
{
}

void connection_setup::start()
{
    exchange(
        link_,
        [self = shared_from_this()](
            boost::redis::request& request) { push_greeting(request, self->around_.config.where); },
        [self = shared_from_this()](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->ended_)
                self->greeted(replies);
        });
}

void connection_setup::greeted(const reply_list& replies)
{
    auto told = read_welcome(around_.config.where, replies);
    if (told.refused) {
        end(told.refused);
        return;
    }
    if (told.in_cluster && !around_.config.has_hash_tag()) {
        // Scripts name a lock and the probe. A first acquire, which names the lock alone, would be granted.
        end(make_failure(errc::misconfigured_backend,
            "the server is a node of a Redis Cluster: give a prefix with braces, so that all keys share a slot"));
        return;
    }
    if (told.may_have_replicas)
        around_.replicas_seen.store(true, std::memory_order_relaxed);
    identity_ = std::move(told.identity);
    for (auto& each : told.warnings)
        around_.told.warn_once(std::move(each));
    link_->send_at_once();
    settle_previous();
}

void connection_setup::settle_previous()
{
    around_.lost.connected_to(identity_.process);
    const auto killed = around_.lost.to_close();
    exchange(
        link_,
        [self = shared_from_this(), killed](boost::redis::request& request) {
            for (const auto& each : killed)
                request.push("CLIENT", "KILL", "ID", each.id);
            push_rights_check(request, self->around_.config);
            if (!self->around_.config.plain())
                self->around_.anchor.push(request, script::form::whole);
        },
        [self = shared_from_this(), killed](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->ended_)
                self->settled_previous(replies, killed);
        });
}

void connection_setup::settled_previous(const reply_list& replies, const suspects& killed)
{
    for (std::size_t i = 0; i < killed.size(); ++i) {
        if (replies[i].is(reply::kind::number)) {
            around_.lost.closed_by_server(killed[i].number);
            continue;
        }
        if (const auto why = refusal(replies[i]); why->code == errc::unavailable) {
            // It passes, and the right to kill may be there after all.
            end(why);
            return;
        }
        around_.lost.not_to_be_closed(killed[i].number);
        around_.told.warn_once(
            "CLIENT KILL is not allowed, so an interrupted acquire can only be settled by waiting for its ttl");
    }
    auto allowed = read_rights(replies[killed.size()], replies[killed.size() + 1]);
    if (allowed.refused) {
        end(allowed.refused);
        return;
    }
    for (auto& each : allowed.warnings)
        around_.told.warn_once(std::move(each));
    if (!around_.config.plain() && !replies.back().is(reply::kind::number)) {
        end(refusal(replies.back()));
        return;
    }
    around_.anchor.note_lifted(lease_clock::now());
    end(nullptr);
}

void connection_setup::end(const failure_ptr& refused)
{
    const auto ended = std::exchange(ended_, nullptr);
    ended(refused, identity_);
}

} // namespace colock::redis::detail
