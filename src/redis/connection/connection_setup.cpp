// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/connection_setup.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/connection/rights_check.hpp"
#include "redis/failures.hpp"

#include <colock/clock.hpp>

#include <cstddef>
#include <utility>

namespace colock::inline v0::redis::detail {

connection_setup::connection_setup(std::shared_ptr<server_connection> on, setup_context context, handler on_end)
    : connection_(std::move(on)), context_(context), handler_(std::move(on_end))
{
}

void connection_setup::start()
{
    boost::redis::request commands;
    push_greeting(commands, context_.config.where);
    connection_->exec(std::move(commands), [self = shared_from_this()](const reply_list& replies) {
        if (self->handler_)
            self->on_greeting(replies);
    });
}

void connection_setup::on_greeting(const reply_list& replies)
{
    auto result = read_greeting(context_.config.where, replies);
    if (result.refused) {
        end(result.refused);
        return;
    }
    if (result.in_cluster && !context_.config.has_hash_tag()) {
        // Without a hash tag, the keys of a script (the lock and the probe key) may be in different slots, and the
        // server refuses the script. A first acquire uses only the lock's key, so the server would grant a lock that
        // cannot be released.
        end(make_failure(errc::misconfigured_backend,
            "the server is a node of a Redis Cluster: give a prefix with braces, so that all keys share a slot"));
        return;
    }
    if (result.may_have_replicas)
        context_.replicas_seen.store(true, std::memory_order_relaxed);
    identity_ = std::move(result.identity);
    for (auto& each : result.warnings)
        context_.reporter.warn(each);
    connection_->disable_nagle();
    kill_previous();
}

void connection_setup::kill_previous()
{
    context_.lost.on_connected_to(identity_.process);
    const auto killed = context_.lost.connections_to_close();
    boost::redis::request commands;
    for (const auto& each : killed)
        commands.push("CLIENT", "KILL", "ID", each.id);
    push_rights_check(commands, context_.config);
    if (!context_.config.plain())
        context_.anchor.push(commands, script::form::whole);
    connection_->exec(std::move(commands), [self = shared_from_this(), killed](const reply_list& replies) {
        if (self->handler_)
            self->on_previous_killed(replies, killed);
    });
}

void connection_setup::on_previous_killed(const reply_list& replies, const connections_to_close& killed)
{
    for (std::size_t i = 0; i < killed.size(); ++i) {
        if (replies[i].is(reply::kind::number)) {
            context_.lost.on_closed_by_server(killed[i].number);
            continue;
        }
        if (const auto why = refusal(replies[i]); why->code == errc::unavailable) {
            // The error is temporary, and the user may be allowed to kill connections. The setup must be tried again.
            end(why);
            return;
        }
        context_.lost.on_close_refused(killed[i].number);
    }
    auto allowed = read_rights(replies[killed.size()], replies[killed.size() + 1], replies[killed.size() + 2]);
    if (allowed.refused) {
        end(allowed.refused);
        return;
    }
    context_.sorted_sets_refused = std::move(allowed.sorted_sets_refused);
    for (auto& each : allowed.warnings)
        context_.reporter.warn(each);
    if (!context_.config.plain() && !replies.back().is(reply::kind::number)) {
        end(refusal(replies.back()));
        return;
    }
    context_.anchor.note_raised(lease_clock::now());
    end(nullptr);
}

void connection_setup::end(const failure_ptr& refused)
{
    const auto on_end = std::exchange(handler_, nullptr);
    on_end(refused, identity_);
}

} // namespace colock::inline v0::redis::detail
