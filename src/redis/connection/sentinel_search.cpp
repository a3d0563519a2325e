// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/sentinel_search.hpp"

#include "redis/connection/server_check.hpp"
#include "redis/failures.hpp"
#include "redis/pipeline/exchange.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace colock::redis::detail {

sentinel_search::sentinel_search(connection_factory& made_by, const settings& config, handler ended)
    : links_(made_by), config_(config), ended_(std::move(ended))
{
}

void sentinel_search::ask(std::size_t which)
{
    if (which == config_.where.hosts.size()) {
        end({},
            make_failure(errc::unavailable,
                "no Sentinel could name the master " + config_.where.master + (problem_ ? ": " + problem_->detail : ""),
                problem_ ? problem_->cause : error_code()));
        return;
    }
    asked_ = links_.make(config_.where.hosts[which]);
    exchange(
        asked_,
        [self = shared_from_this()](boost::redis::request& request) {
            const auto& config = self->config_;
            push_hello(request, config.sentinel_user, config.sentinel_password, {});
            request.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", config.where.master);
        },
        [self = shared_from_this(), used = asked_](delivery how, const reply_list& replies) {
            if (how == delivery::answered)
                self->answered(replies);
            used->close();
        });
    asked_->run([self = shared_from_this(), used = asked_, which](const error_code& code) {
        // What waits for a connection in the driver is told that there is none.
        used->close();
        if (self->asked_ == used)
            self->link_ended(which, code == asio::error::operation_aborted ? code : used->loss(code));
    });
}

void sentinel_search::answered(const reply_list& replies)
{
    if (const auto& address = replies[1]; address.is(reply::kind::array) && address.items.size() == 2)
        found_ = {address.at(0).text, address.at(1).text};
    for (const auto& each : replies) {
        if (each.is_error() && !problem_)
            problem_ = refusal(each);
    }
}

void sentinel_search::link_ended(std::size_t which, const error_code& code)
{
    links_.drop(asked_);
    // Once it has answered, its connection is closed by us.
    if (code && code != asio::error::operation_aborted && !problem_)
        problem_ = lost_connection(code);
    if (found_.host.empty())
        ask(which + 1);
    else
        end(found_, nullptr);
}

void sentinel_search::end(const endpoint& master, const failure_ptr& why)
{
    if (const auto ended = std::exchange(ended_, nullptr))
        ended(master, why);
}

void sentinel_search::stop()
{
    ended_ = nullptr;
    if (!asked_)
        return;
    asked_->close();
    links_.drop(asked_);
}

void sentinel_search::disown()
{
    if (asked_)
        asked_->disown();
    stop();
}

} // namespace colock::redis::detail
