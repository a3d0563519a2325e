// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/model_adapter.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace colock::simulation {

namespace {

/// Tokens that a query has found, or why it has failed.
struct found_tokens
{
    std::vector<token> tokens{};
    failure_ptr error{};
};

template <class Outcome>
Outcome make_failed(const failure_ptr& why)
{
    Outcome outcome{};
    if constexpr (requires { outcome.released; }) {
        outcome.released = make_failed<release_outcome>(why);
        outcome.created = create_outcome::failed(why);
    } else if constexpr (requires { outcome.which; }) {
        outcome.status = create_status::failed;
        outcome.refusal = create_outcome::failed(why);
    } else {
        if constexpr (requires { outcome.status; })
            outcome.status = decltype(outcome.status)::failed;
        outcome.error = why;
    }
    return outcome;
}

} // namespace

model_adapter::model_adapter(
    asio::any_io_executor executor, std::shared_ptr<model_store> server, network& through, model_options chosen)
    : adapter(std::move(executor)), server_(std::move(server)), network_(through), options_(chosen)
{
    connect();
}

adapter_traits model_adapter::traits() const noexcept
{
    adapter_traits result{.name = "model", .capabilities = options_.can};
    if (options_.reports_timeout)
        result.limits.operation_timeout = options_.answer_timeout;
    return result;
}

lease_clock::duration model_adapter::delay(time_point& last_arrival)
{
    const auto now = network_.true_time();
    auto arrival =
        std::max(now, quality.silent_until) + network_.random().between(quality.min_delay, quality.max_delay);
    if (!quality.overtakes)
        arrival = last_arrival = std::max(arrival, last_arrival);
    return arrival - now;
}

void model_adapter::post(std::function<void()> action)
{
    if (const auto to = executor())
        asio::post(to, [alive = shared_from_this(), action = std::move(action)] { action(); });
}

template <class Outcome, class Execute, class Done>
void model_adapter::call(Execute execute, Done done)
{
    const auto id = ++last_id_;
    const auto self = std::static_pointer_cast<model_adapter>(shared_from_this());
    const auto shared_done = std::make_shared<Done>(std::move(done));
    const std::weak_ptr<model_adapter> weak = self;
    // The reply belongs to the connection on which the request was sent.
    const auto on_reply = [weak, id, shared_done](Outcome outcome, std::uint64_t by) {
        const auto alive = weak.lock();
        if (!alive || !alive->pending_.contains(id) || alive->connection_ != by)
            return;
        alive->pending_.erase(id);
        alive->post([shared_done, outcome = std::make_shared<Outcome>(std::move(outcome))] {
            (*shared_done)(std::move(*outcome));
        });
    };
    pending_call& added = pending_[id];
    added.fail = [this, shared_done](const failure_ptr& why) {
        post([shared_done, why] { (*shared_done)(make_failed<Outcome>(why)); });
    };
    added.send = [this, id, weak, execute, on_reply] {
        pending_.at(id).is_sent = true;
        const auto by = connection_;
        const auto arrive = [this, weak, by, execute, on_reply, store = server_, through = &network_] {
            const auto alive = weak.lock();
            Outcome outcome = execute(*store, through->server_time());
            if (alive && by == connection_)
                through->after(
                    delay(last_reply_), [on_reply, by, outcome = std::move(outcome)] { on_reply(outcome, by); });
        };
        network_.after(delay(last_request_), [this, weak, by, arrive, through = &network_] {
            const auto alive = weak.lock();
            if (alive && by == connection_)
                return arrive();
            // A request whose connection is gone is lost, or arrives late.
            if (through->random().once_in(2))
                through->after(through->random().between(milliseconds(0), milliseconds(6000)), arrive);
        });
    };
    if (quality.refused_once_in > 0 && network_.random().once_in(quality.refused_once_in)) {
        fail(id, errc::unavailable);
    } else {
        network_.after(options_.answer_timeout, [weak, id] {
            if (const auto alive = weak.lock())
                alive->on_timeout(id);
        });
        if (is_connected_)
            added.send();
    }
}

void model_adapter::fail(std::uint64_t id, errc code)
{
    const auto failed = std::move(pending_.at(id).fail);
    pending_.erase(id);
    failed(make_failure(code, "the link has failed", asio::error::connection_reset));
}

void model_adapter::on_timeout(std::uint64_t id)
{
    const auto found = pending_.find(id);
    if (found == pending_.end())
        return;
    if (!found->second.is_sent)
        return fail(id, errc::unavailable);
    fail(id, errc::outcome_unknown);
    // A link that does not answer is given up.
    cut(network_.random().between(milliseconds(1), milliseconds(200)));
}

void model_adapter::cut(lease_clock::duration down)
{
    if (!is_connected_)
        return;
    is_connected_ = false;
    ++connection_;
    last_request_ = last_reply_ = {};
    std::vector<std::uint64_t> sent;
    for (const auto& [id, each] : pending_) {
        if (each.is_sent)
            sent.push_back(id);
    }
    for (const auto id : sent)
        fail(id, errc::outcome_unknown);
    post([this] { contact().set_down(asio::error::connection_reset); });
    end_all_waits();
    network_.after(down, [weak = weak_from_this()] {
        if (const auto alive = std::static_pointer_cast<model_adapter>(weak.lock()))
            alive->connect();
    });
}

void model_adapter::connect()
{
    is_connected_ = true;
    if (std::exchange(was_connected_, true))
        post([this] { contact().set_up(); });
    else
        contact().set_up();
    std::vector<std::uint64_t> unsent;
    for (const auto& [id, each] : pending_)
        unsent.push_back(id);
    for (const auto id : unsent)
        std::function<void()>(pending_.at(id).send)();
    end_all_waits();
}

void model_adapter::end_wait(std::uint64_t id)
{
    if (!waits_.contains(id))
        return;
    post([this, id] {
        if (const auto found = waits_.find(id); found != waits_.end()) {
            auto done = std::move(found->second.done);
            waits_.erase(found);
            done({});
        }
    });
}

void model_adapter::end_all_waits()
{
    for (const auto& [id, each] : waits_)
        end_wait(id);
}

void model_adapter::start_create(claim_ptr claim, completion<create_outcome> done)
{
    call<create_outcome>(
        [data = claim_data(*claim)](model_store& to, time_point now) { return to.create(data, now); }, std::move(done));
}

void model_adapter::start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done)
{
    const bool settles = guarantee == release_guarantee::settled;
    if (!settles)
        network_.on_release(claim->key());
    call<release_outcome>([data = claim_data(*claim), settles](model_store& to,
                              time_point now) { return settles ? to.abandon(data, now) : to.release(data, now); },
        std::move(done));
}

void model_adapter::start_extend(claim_ptr claim, milliseconds ttl, completion<extend_outcome> done)
{
    call<extend_outcome>(
        [data = claim_data(*claim), ttl](model_store& to, time_point now) { return to.extend(data, ttl, now); },
        std::move(done));
}

void model_adapter::start_is_valid(claim_ptr claim, completion<valid_outcome> done)
{
    call<valid_outcome>([key = claim->key(), held = claim->token()](
                            model_store& to, time_point now) { return valid_outcome{to.is_valid(key, held, now)}; },
        std::move(done));
}

void model_adapter::start_wait(claim_ptr claim, time_point /*until*/, completion<wait_outcome> done)
{
    const auto id = ++last_id_;
    const claim_data data(*claim);
    waits_.emplace(id, pending_wait{std::move(claim), std::move(done)});
    // Without a connection, the wait ends when there is one.
    if (is_connected_)
        send_wait(id, data);
}

void model_adapter::send_wait(std::uint64_t id, const claim_data& data)
{
    const std::weak_ptr<adapter> weak = weak_from_this();
    // Renews the place in the queue.
    network_.after(std::chrono::seconds(1), [this, weak, id, by = connection_, data] {
        if (const auto alive = weak.lock(); alive && by == connection_ && waits_.contains(id))
            send_wait(id, data);
    });
    network_.after(delay(last_request_), [this, weak, id, by = connection_, data] {
        const auto alive = weak.lock();
        if (!alive || by != connection_)
            return;
        server_->watch(data, id, network_.server_time(), [this, weak, id, by] {
            if (const auto watching = weak.lock(); watching && by == connection_)
                network_.after(delay(last_reply_), [this, weak, id] {
                    if (const auto told = weak.lock())
                        end_wait(id);
                });
        });
    });
}

void model_adapter::cancel_wait(claim& claim) noexcept
{
    const auto found = std::ranges::find_if(waits_, [&](const auto& each) { return each.second.waiting == &claim; });
    if (found != waits_.end())
        waits_.erase(found);
}

void model_adapter::start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    call<hand_over_outcome>(
        [from = claim_data(*held), is_abandoned = held->in_doubt(), to = claim_data(*next)](
            model_store& store, time_point now) { return store.hand_over(from, is_abandoned, to, now); },
        std::move(done));
}

template <class Outcome>
void model_adapter::remove_found(filter which, completion<Outcome> done)
{
    const auto remove = [this, done = std::make_shared<completion<Outcome>>(std::move(done))](found_tokens found) {
        if (found.error || found.tokens.empty())
            return (*done)(Outcome{.error = found.error});
        call<Outcome>([tokens = std::move(found.tokens)](
                          model_store& to, time_point now) { return Outcome{.locks = to.remove(tokens, now)}; },
            std::move(*done));
    };
    call<found_tokens>([which = std::move(which)](
                           model_store& to, time_point now) { return found_tokens{.tokens = to.find(which, now)}; },
        remove);
}

void model_adapter::start_listing(listing_request request, completion<list_outcome> done)
{
    if (request.action == listing_action::break_key)
        return remove_found<list_outcome>(std::move(request.filter), std::move(done));
    call<list_outcome>(
        [request = std::move(request)](model_store& to, time_point now) {
            return request.action == listing_action::purge ? to.purge(request.limit, now)
                                                           : to.list(request.filter, request.cursor, now);
        },
        std::move(done));
}

void model_adapter::start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done)
{
    std::vector<claim_data> wanted;
    for (const auto& each : claims)
        wanted.emplace_back(*each);
    call<create_all_outcome>(
        [wanted = std::move(wanted)](model_store& to, time_point now) { return to.create_all(wanted, now); },
        std::move(done));
}

void model_adapter::start_group(std::string id, group_action what, milliseconds ttl, completion<group_outcome> done)
{
    if (what == group_action::release)
        return remove_found<group_outcome>({.group = std::move(id)}, std::move(done));
    call<group_outcome>(
        [id = std::move(id), ttl](model_store& to, time_point now) { return to.extend_group(id, ttl, now); },
        std::move(done));
}

void model_adapter::start_export(claim_ptr held, completion<export_outcome> done)
{
    const auto& bytes = held->token().bytes();
    post([done = std::make_shared<completion<export_outcome>>(std::move(done)),
             ticket = std::string(bytes.begin(), bytes.end())] { (*done)({.ticket = ticket}); });
}

void model_adapter::start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done)
{
    call<create_outcome>([ticket = std::move(ticket), data = claim_data(*claim)](
                             model_store& to, time_point now) { return to.adopt(ticket, data, now); },
        std::move(done));
}

void model_adapter::start_close(lease_clock::duration /*deadline*/, completion<close_outcome> done)
{
    post([done = std::make_shared<completion<close_outcome>>(std::move(done))] { (*done)({}); });
}

} // namespace colock::simulation
