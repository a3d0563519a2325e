// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/sentinel_search.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/failures.hpp"
#include "redis/pipeline/exchange.hpp"

#include <boost/asio/error.hpp>

#include <utility>

namespace colock::inline v0::redis::detail {

sentinel_search::sentinel_search(connection_factory& factory, const settings& config, handler on_end)
    : factory_(factory), config_(config), handler_(std::move(on_end))
{
}

void sentinel_search::query(std::size_t index)
{
    if (index == config_.where.hosts.size()) {
        end({},
            make_failure(errc::unavailable,
                "no Sentinel could name the master " + config_.where.master + (problem_ ? ": " + problem_->detail : ""),
                problem_ ? problem_->cause : error_code()));
        return;
    }
    current_ = factory_.make(config_.where.hosts[index]);
    exchange(
        current_,
        [self = shared_from_this()](boost::redis::request& request) {
            const auto& config = self->config_;
            push_hello(request, config.sentinel_user, config.sentinel_password, {});
            request.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", config.where.master);
        },
        [self = shared_from_this(), connection = current_, index](delivery how, const reply_list& replies) {
            if (how == delivery::answered)
                self->on_reply(index, replies);
            connection->close();
        });
    current_->run([self = shared_from_this(), connection = current_, index](const error_code& code) {
        // The driver may still hold requests that wait for a connection. Closing ends them.
        connection->close();
        if (self->current_ == connection)
            self->connection_ended(
                index, code == asio::error::operation_aborted ? code : connection->translate_error(code));
    });
}

void sentinel_search::on_reply(std::size_t index, const reply_list& replies)
{
    if (const auto& address = replies[1]; address.is(reply::kind::array) && address.items.size() == 2)
        found_ = {address.at(0).text, address.at(1).text};
    for (const auto& each : replies) {
        if (!each.is_error() || problem_)
            continue;
        problem_ = each.text.starts_with("ERR unknown command")
                       ? make_failure(errc::unavailable, to_text(config_.where.hosts[index]) +
                                                             " is no Sentinel; name the Sentinels, whose default port "
                                                             "is 26379")
                       : refusal(each);
    }
}

void sentinel_search::connection_ended(std::size_t index, const error_code& code)
{
    factory_.drop(current_);
    // `operation_aborted` is no problem: the search closes the connection itself once the Sentinel has answered.
    if (code && code != asio::error::operation_aborted && !problem_)
        problem_ = lost_connection(to_text(config_.where.hosts[index]), code);
    if (found_.host.empty())
        query(index + 1);
    else
        end(found_, nullptr);
}

void sentinel_search::end(const endpoint& master, const failure_ptr& why)
{
    if (const auto on_end = std::exchange(handler_, nullptr))
        on_end(master, why);
}

void sentinel_search::stop()
{
    handler_ = nullptr;
    if (!current_)
        return;
    current_->close();
    factory_.drop(current_);
}

void sentinel_search::drop_after_fork()
{
    if (current_)
        current_->drop_after_fork();
    stop();
}

} // namespace colock::inline v0::redis::detail
