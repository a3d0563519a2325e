// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_discovery.hpp"

#include "mongo/driver/command.hpp"
#include "mongo/topology/hello.hpp"

#include <boost/asio/post.hpp>

#include <boost/asio/ssl/error.hpp>

#include <algorithm>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Maximum number of hosts to ask. A replica set has at most 50 members.
constexpr std::size_t max_hosts = 100;

} // namespace

/// The command `hello` to one host.
class server_discovery::hello_command final : public command
{
public:
    hello_command(std::weak_ptr<server_discovery> of, std::size_t which)
        : command(dated_hello{}), of_(std::move(of)), which_(which)
    {
    }

private:
    void on_end() override
    {
        const auto of = of_.lock();
        if (!of)
            return;
        // Posted, because the connection has to become free first, and because `start` may be on the call stack.
        asio::post(of->strand_, [of, which = which_] { of->answered(which); });
    }

    const std::weak_ptr<server_discovery> of_;
    const std::size_t which_;
};

server_discovery::server_discovery(const asio::any_io_executor& strand, discovery_params params)
    : strand_(strand), params_(std::move(params))
{
}

server_discovery::~server_discovery() = default;

void server_discovery::start(handler on_result)
{
    on_result_ = std::move(on_result);
    for (const auto& each : params_.hosts)
        ask(each);
}

void server_discovery::ask(destination address)
{
    const auto is_same = [&](const asked_host& each) {
        return each.at.host == address.host && each.at.port == address.port;
    };
    if (asked_.size() == max_hosts || std::ranges::any_of(asked_, is_same))
        return;
    address.login = nullptr;
    const auto deadline = saturating_add(lease_clock::now(), address.connect_timeout);
    const auto pool = std::make_shared<connection_pool>(strand_, address, 1);
    const auto command = std::make_shared<hello_command>(weak_from_this(), asked_.size());
    asked_.push_back({.at = std::move(address), .pool = pool, .command = command});
    ++unanswered_;
    pool->ask(command, deadline);
}

void server_discovery::answered(std::size_t which)
{
    if (!on_result_)
        return;
    --unanswered_;
    auto& host = asked_[which];
    const auto& got = host.command->got();
    if (got.what == answer::kind::done) {
        const hello hello_reply(got.reply);
        if (is_primary(host, hello_reply)) {
            end({.what = discovery_result::kind::primary,
                .at = host.at,
                .server_time = hello_reply.local_time,
                .sent_at = got.asked,
                .identity = hello_reply.identity});
            return;
        }
        // A copy, because `host` moves when `ask` adds another host.
        auto other = host.at;
        if (!params_.direct && !host.is_of_another_set) {
            for (const auto& each : hello_reply.members) {
                other.host = each.host;
                other.port = each.port;
                ask(other);
            }
        }
    } else {
        host.why = got.why + host.command->explanation();
    }
    if (unanswered_ == 0)
        end(not_found());
}

bool server_discovery::is_primary(asked_host& host, const hello& hello_reply) const
{
    const bool wants_a_set = !params_.replica_set.empty() || params_.hosts.size() > 1;
    host.is_of_another_set = hello_reply.is_router || (wants_a_set && hello_reply.identity.set.empty()) ||
                             (!params_.replica_set.empty() && hello_reply.identity.set != params_.replica_set);
    if (hello_reply.is_router)
        host.why = "is a router of a sharded cluster, whose clock does not decide about leases: name the members of "
                   "one replica set";
    else if (host.is_of_another_set)
        host.why = hello_reply.identity.set.empty() ? "is in no replica set"
                                                    : "is in the replica set " + hello_reply.identity.set;
    else if (!hello_reply.writable)
        host.why = "is " + hello_reply.state;
    return host.why.empty();
}

discovery_result server_discovery::not_found() const
{
    discovery_result none;
    // If a member of the right replica set has answered, the primary may be missing only because of an election.
    const auto has_answered_for_set = [](const asked_host& each) {
        return each.command->got().what == answer::kind::done && !each.is_of_another_set;
    };
    const auto is_of_another = [](const asked_host& each) { return each.is_of_another_set; };
    if (std::ranges::any_of(asked_, is_of_another) && std::ranges::none_of(asked_, has_answered_for_set))
        none.what = discovery_result::kind::misconfigured;
    for (const auto& each : asked_) {
        none.why += (none.why.empty() ? "" : "; ") + each.at.name() + ": " + each.why;
        const auto& cause = each.command->got().cause;
        if (!none.cause || cause.category() == asio::error::get_ssl_category())
            none.cause = cause;
    }
    return none;
}

void server_discovery::end(discovery_result found)
{
    const auto on_result = std::exchange(on_result_, {});
    close();
    on_result(std::move(found));
}

void server_discovery::close()
{
    on_result_ = {};
    asked_.clear();
}

} // namespace colock::inline v0::mongo::detail
