// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/server_lookup.hpp"

#include "net/resolve.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// How long other names are awaited when some address is known: the "Resolution Delay" of RFC 8305.
constexpr std::chrono::milliseconds resolution_delay{50};

} // namespace

server_lookup::server_lookup(const asio::any_io_executor& executor, const std::vector<endpoint>& hosts)
    : executor_(executor), delay_(executor)
{
    for (const auto& each : hosts) {
        auto& added = hosts_.emplace_back(host{.address = each});
        if (const auto numeric = remote::numeric_endpoint(each.host, each.port)) {
            added.is_name = false;
            added.endpoints.push_back(*numeric);
        }
    }
}

void server_lookup::find(std::function<void(result)> found)
{
    found_ = std::move(found);
    failure_ = {};
    has_reported_ = false;
    for (auto& each : hosts_) {
        if (!each.is_name || each.lookup)
            continue;
        auto lookup = std::make_shared<remote::name_lookup>(executor_);
        lookup->start(each.address.host,
            [self = shared_from_this(), &each](const remote::name_result& answer) { self->on_answer(each, answer); });
        each.lookup = std::move(lookup);
    }
    if (!all_answered())
        report_after_delay();
    else
        asio::post(executor_, [self = shared_from_this()] {
            if (self->found_)
                self->report();
        });
}

bool server_lookup::has_names() const noexcept
{
    return std::ranges::any_of(hosts_, &host::is_name);
}

void server_lookup::cancel() noexcept
{
    found_ = nullptr;
    delay_.cancel();
    for (const auto& each : hosts_) {
        if (each.lookup)
            each.lookup->cancel();
    }
}

bool server_lookup::all_answered() const noexcept
{
    return std::ranges::none_of(hosts_, [](const auto& each) { return each.lookup != nullptr; });
}

void server_lookup::on_answer(host& server, const remote::name_result& answer)
{
    server.lookup = nullptr;
    if (!found_)
        return;
    bool has_changed = false;
    if (answer.failure) {
        failure_ = {server.address.host + ": " + answer.failure.message(), answer.failure};
    } else {
        std::vector<asio::ip::tcp::endpoint> new_endpoints;
        for (const auto& each : remote::with_port(answer, server.address.host, server.address.port))
            new_endpoints.push_back(each.endpoint());
        has_changed = !std::ranges::is_permutation(server.endpoints, new_endpoints);
        server.endpoints = std::move(new_endpoints);
    }
    if (has_reported_ ? has_changed : all_answered())
        report();
    else if (all_answered())
        found_ = nullptr;
    else
        report_after_delay();
}

void server_lookup::report_after_delay()
{
    const bool is_any_known = std::ranges::any_of(hosts_, [](const auto& each) { return !each.endpoints.empty(); });
    if (has_reported_ || !is_any_known || std::exchange(is_delayed_, true))
        return;
    delay_.expires_after(resolution_delay);
    delay_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
        self->is_delayed_ = false;
        if (self->found_ && !self->has_reported_)
            self->report();
    });
}

void server_lookup::report()
{
    has_reported_ = true;
    result found{.connection_failure = failure_};
    for (const auto& each : hosts_)
        found.servers.insert(found.servers.end(), each.endpoints.begin(), each.endpoints.end());
    std::ranges::shuffle(found.servers, std::random_device());
    // The call may cancel this lookup.
    const auto receiver = all_answered() ? std::exchange(found_, nullptr) : found_;
    receiver(std::move(found));
}

} // namespace colock::inline v0::zookeeper::detail
