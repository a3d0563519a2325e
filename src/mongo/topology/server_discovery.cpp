// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/topology/server_discovery.hpp"

#include "mongo/driver/command.hpp"
#include "mongo/driver/hello.hpp"

#include <boost/asio/post.hpp>

#include <boost/asio/ssl/error.hpp>

#include <algorithm>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Maximum number of hosts to ask. A replica set has at most 50 members.
constexpr std::size_t max_hosts = 100;
/// Time between two questions to a member that has answered.
constexpr std::chrono::milliseconds question_interval(200);

} // namespace

/// The command `hello` to one host.
class server_discovery::hello_command final : public command
{
public:
    hello_command(std::weak_ptr<server_discovery> discovery, std::size_t index)
        : command(dated_hello{}), discovery_(std::move(discovery)), index_(index)
    {
    }

private:
    void on_end() override
    {
        const auto discovery = discovery_.lock();
        if (!discovery)
            return;
        // Posted, because the connection has to become free first, and because `start` may be on the call stack.
        asio::post(discovery->strand_, [discovery, index = index_] { discovery->answered(index); });
    }

    const std::weak_ptr<server_discovery> discovery_;
    const std::size_t index_;
};

server_discovery::server_discovery(const asio::any_io_executor& strand, discovery_params params)
    : strand_(strand), params_(std::move(params)), next_question_(strand)
{
}

server_discovery::~server_discovery() = default;

void server_discovery::start(handler on_result)
{
    on_result_ = std::move(on_result);
    for (const auto& each : params_.hosts)
        ask(each);
    repeat_hello();
}

void server_discovery::ask(destination address)
{
    const auto is_same = [&](const asked_host& each) {
        return each.at.host == address.host && each.at.port == address.port;
    };
    if (hosts_.size() == max_hosts || std::ranges::any_of(hosts_, is_same))
        return;
    address.login = nullptr;
    const auto pool = std::make_shared<connection_pool>(strand_, address, 1);
    hosts_.push_back({.at = std::move(address), .pool = pool});
    send_hello(hosts_.size() - 1);
}

void server_discovery::send_hello(std::size_t index)
{
    auto& host = hosts_[index];
    host.command = std::make_shared<hello_command>(weak_from_this(), index);
    host.pool->ask(host.command, saturating_add(lease_clock::now(), host.at.connect_timeout));
}

void server_discovery::repeat_hello()
{
    next_question_.expires_after(question_interval);
    next_question_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self || !self->on_result_)
            return;
        for (std::size_t i = 0; i < self->hosts_.size(); ++i) {
            const auto& host = self->hosts_[i];
            if (host.has_replied && !host.command && !host.is_unsuitable)
                self->send_hello(i);
        }
        self->repeat_hello();
    });
}

void server_discovery::answered(std::size_t index)
{
    if (!on_result_)
        return;
    auto& host = hosts_[index];
    const auto command = std::exchange(host.command, nullptr);
    const auto& result = command->result();
    host.has_result = true;
    host.cause = result.cause;
    if (result.outcome == answer::kind::done) {
        host.has_replied = true;
        const hello hello_reply(result.reply);
        if (is_primary(host, hello_reply)) {
            discovery_result found{
                .outcome = discovery_result::kind::primary, .at = host.at, .identity = hello_reply.identity};
            found.clock.update(hello_reply.local_time, result.sent_at, lease_clock::now());
            end(std::move(found));
            return;
        }
        // A copy, because `host` moves when `ask` adds another host.
        auto other = host.at;
        if (!params_.direct && !host.is_unsuitable) {
            for (const auto& each : hello_reply.members) {
                other.host = each.host;
                other.port = each.port;
                ask(other);
            }
        }
    } else {
        host.is_unsuitable = result.is_too_old;
        host.reason = result.is_too_old ? too_old : result.text + command->explanation();
    }
    if (std::ranges::all_of(hosts_, &asked_host::has_result))
        end(not_found());
}

bool server_discovery::is_primary(asked_host& host, const hello& hello_reply) const
{
    host.reason.clear();
    const bool wants_a_set = !params_.replica_set.empty() || params_.hosts.size() > 1;
    host.is_unsuitable = hello_reply.is_router || (wants_a_set && hello_reply.identity.set.empty()) ||
                         (!params_.replica_set.empty() && hello_reply.identity.set != params_.replica_set);
    if (hello_reply.is_router)
        host.reason = "is a router of a sharded cluster, whose clock does not decide about leases: name the members of "
                      "one replica set";
    else if (host.is_unsuitable)
        host.reason = hello_reply.identity.set.empty() ? "is in no replica set"
                                                       : "is in the replica set " + hello_reply.identity.set;
    else if (!hello_reply.writable)
        host.reason = "is " + hello_reply.state;
    return host.reason.empty();
}

discovery_result server_discovery::not_found() const
{
    discovery_result result;
    // If a member of the right replica set has answered, the primary may be missing only because of an election.
    const auto is_suitable = [](const asked_host& each) { return each.has_replied && !each.is_unsuitable; };
    if (std::ranges::any_of(hosts_, &asked_host::is_unsuitable) && std::ranges::none_of(hosts_, is_suitable))
        result.outcome = discovery_result::kind::misconfigured;
    for (const auto& each : hosts_) {
        result.reasons += (result.reasons.empty() ? "" : "; ") + each.at.name() + ": " + each.reason;
        if (!result.cause || each.cause.category() == asio::error::get_ssl_category())
            result.cause = each.cause;
    }
    return result;
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
    hosts_.clear();
    next_question_.cancel();
}

} // namespace colock::inline v0::mongo::detail
