// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_discovery.hpp"

#include "mongo/driver/command.hpp"
#include "mongo/topology/hello.hpp"

#include <boost/asio/post.hpp>

#include <boost/asio/ssl/error.hpp>

#include <algorithm>
#include <utility>

namespace colock::mongo::detail {

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
    void performed() override
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

server_discovery::server_discovery(const asio::any_io_executor& strand, discovery_params what)
    : strand_(strand), what_(std::move(what))
{
}

server_discovery::~server_discovery() = default;

void server_discovery::start(lease_clock::time_point deadline, handler on_result)
{
    deadline_ = deadline;
    on_result_ = std::move(on_result);
    for (const auto& each : what_.hosts)
        ask(each);
}

void server_discovery::ask(destination whom)
{
    const auto is_same = [&](const asked_host& each) { return each.at.host == whom.host && each.at.port == whom.port; };
    if (asked_.size() == max_hosts || std::ranges::any_of(asked_, is_same))
        return;
    whom.login = nullptr;
    const auto over = std::make_shared<connection_pool>(strand_, whom, 1);
    const auto what = std::make_shared<hello_command>(weak_from_this(), asked_.size());
    asked_.push_back({.at = std::move(whom), .over = over, .what = what});
    ++unanswered_;
    over->ask(what, deadline_);
}

void server_discovery::answered(std::size_t which)
{
    if (!on_result_)
        return;
    --unanswered_;
    auto& host = asked_[which];
    const auto& got = host.what->got();
    if (got.what == answer::kind::done) {
        const hello said(got.reply);
        if (is_primary(host, said)) {
            end({.what = discovery_result::kind::primary,
                .at = host.at,
                .server_time = said.local_time,
                .asked = got.asked,
                .replica_set = said.set,
                .max_wire_version = said.max_wire_version});
            return;
        }
        // A copy, because `host` moves when `ask` adds another host.
        auto other = host.at;
        if (!what_.direct && !host.is_of_another_set) {
            for (const auto& each : said.members) {
                other.host = each.host;
                other.port = each.port;
                ask(other);
            }
        }
    } else {
        host.why = got.why + host.what->explanation();
    }
    if (unanswered_ == 0)
        end(not_found());
}

bool server_discovery::is_primary(asked_host& host, const hello& said) const
{
    const bool wants_a_set = !what_.replica_set.empty() || what_.hosts.size() > 1;
    host.is_of_another_set = said.is_router || (wants_a_set && said.set.empty()) ||
                             (!what_.replica_set.empty() && said.set != what_.replica_set);
    if (said.is_router)
        host.why = "is a router of a sharded cluster, whose clock does not decide about leases: name the members of "
                   "one replica set";
    else if (host.is_of_another_set)
        host.why = said.set.empty() ? "is in no replica set" : "is in the replica set " + said.set;
    else if (!said.writable)
        host.why = "is " + said.state;
    return host.why.empty();
}

discovery_result server_discovery::not_found() const
{
    discovery_result none;
    // If a member of the right replica set has answered, the primary may be missing only because of an election.
    const auto answered_for_it = [](const asked_host& each) {
        return each.what->got().what == answer::kind::done && !each.is_of_another_set;
    };
    const auto is_of_another = [](const asked_host& each) { return each.is_of_another_set; };
    if (std::ranges::any_of(asked_, is_of_another) && std::ranges::none_of(asked_, answered_for_it))
        none.what = discovery_result::kind::misconfigured;
    for (const auto& each : asked_) {
        none.why += (none.why.empty() ? "" : "; ") + each.at.name() + ": " + each.why;
        const auto& cause = each.what->got().cause;
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

} // namespace colock::mongo::detail
