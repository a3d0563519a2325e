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
    if (asked_.size() == max_hosts || std::ranges::any_of(asked_, is_same))
        return;
    address.login = nullptr;
    const auto pool = std::make_shared<connection_pool>(strand_, address, 1);
    asked_.push_back({.at = std::move(address), .pool = pool});
    send_hello(asked_.size() - 1);
}

void server_discovery::send_hello(std::size_t which)
{
    auto& host = asked_[which];
    host.command = std::make_shared<hello_command>(weak_from_this(), which);
    host.pool->ask(host.command, saturating_add(lease_clock::now(), host.at.connect_timeout));
}

void server_discovery::repeat_hello()
{
    next_question_.expires_after(question_interval);
    next_question_.async_wait([weak = weak_from_this()](const boost::system::error_code& cancelled) {
        const auto self = weak.lock();
        if (cancelled || !self || !self->on_result_)
            return;
        for (std::size_t i = 0; i < self->asked_.size(); ++i) {
            const auto& host = self->asked_[i];
            if (host.has_replied && !host.command && !host.is_unsuitable)
                self->send_hello(i);
        }
        self->repeat_hello();
    });
}

void server_discovery::answered(std::size_t which)
{
    if (!on_result_)
        return;
    auto& host = asked_[which];
    const auto command = std::exchange(host.command, nullptr);
    const auto& got = command->got();
    host.has_result = true;
    host.cause = got.cause;
    if (got.what == answer::kind::done) {
        host.has_replied = true;
        const hello hello_reply(got.reply);
        if (is_primary(host, hello_reply)) {
            discovery_result found{
                .what = discovery_result::kind::primary, .at = host.at, .identity = hello_reply.identity};
            found.clock.update(hello_reply.local_time, got.asked, lease_clock::now());
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
        host.is_unsuitable = got.is_too_old;
        host.why = got.is_too_old ? too_old : got.why + command->explanation();
    }
    if (std::ranges::all_of(asked_, &asked_host::has_result))
        end(not_found());
}

bool server_discovery::is_primary(asked_host& host, const hello& hello_reply) const
{
    host.why.clear();
    const bool wants_a_set = !params_.replica_set.empty() || params_.hosts.size() > 1;
    host.is_unsuitable = hello_reply.is_router || (wants_a_set && hello_reply.identity.set.empty()) ||
                         (!params_.replica_set.empty() && hello_reply.identity.set != params_.replica_set);
    if (hello_reply.is_router)
        host.why = "is a router of a sharded cluster, whose clock does not decide about leases: name the members of "
                   "one replica set";
    else if (host.is_unsuitable)
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
    const auto is_suitable = [](const asked_host& each) { return each.has_replied && !each.is_unsuitable; };
    if (std::ranges::any_of(asked_, &asked_host::is_unsuitable) && std::ranges::none_of(asked_, is_suitable))
        none.what = discovery_result::kind::misconfigured;
    for (const auto& each : asked_) {
        none.why += (none.why.empty() ? "" : "; ") + each.at.name() + ": " + each.why;
        if (!none.cause || each.cause.category() == asio::error::get_ssl_category())
            none.cause = each.cause;
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
    next_question_.cancel();
}

} // namespace colock::inline v0::mongo::detail
