// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/happy_eyeballs.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::remote {

/// The executor of a connection's sockets. It is the same executor as elsewhere, but a different type. Boost.Redis
/// derives the type of its resolver from the executor, and therefore uses the resolver below.
class socket_executor : public asio::any_io_executor
{
public:
    using any_io_executor::any_io_executor;
    explicit socket_executor(asio::any_io_executor other) noexcept : any_io_executor(std::move(other)) {}
};

/// Returns the endpoint of a numeric address and port; empty if the address or the port is not numeric.
[[nodiscard]] inline std::optional<asio::ip::tcp::endpoint> numeric_endpoint(
    std::string_view host, std::string_view service)
{
    boost::system::error_code not_numeric;
    const auto address = asio::ip::make_address(host, not_numeric);
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(service.data(), service.data() + service.size(), port);
    if (not_numeric || error != std::errc() || end != service.data() + service.size())
        return std::nullopt;
    return asio::ip::tcp::endpoint(address, port);
}

using addresses = asio::ip::tcp::resolver::results_type;
using resolve_handler = asio::any_completion_handler<void(boost::system::error_code, addresses)>;

/// Returns the same addresses, rotated so that the address with that index is the first.
[[nodiscard]] inline addresses rotated_to(std::size_t first, const addresses& found)
{
    if (first == 0)
        return found;
    std::vector<asio::ip::tcp::endpoint> rotated;
    for (const auto& each : found)
        rotated.push_back(each.endpoint());
    std::ranges::rotate(rotated, rotated.begin() + static_cast<std::ptrdiff_t>(first));
    return addresses::create(rotated.begin(), rotated.end(), found.begin()->host_name(), found.begin()->service_name());
}

/// Returns why no socket of this protocol can be opened, for example because no descriptor is free. Asio reports such a
/// failure as a cancellation, Boost.Redis as a timeout, and the C library as a host that was not found.
[[nodiscard]] inline boost::system::error_code socket_problem(
    const asio::any_io_executor& executor, const asio::ip::tcp& protocol)
{
    boost::system::error_code problem;
    asio::ip::tcp::socket(executor).open(protocol, problem);
    return problem;
}

/// Completes with the addresses in `found`. The address that accepted a connection first becomes the first element.
inline void complete_reachable_first(
    const asio::any_io_executor& executor, happy_eyeballs& attempts, const addresses& found, resolve_handler resolved)
{
    std::vector<asio::ip::tcp::endpoint> endpoints;
    for (const auto& each : found)
        endpoints.push_back(each.endpoint());
    attempts.run(std::move(endpoints), [executor, found, resolved = std::move(resolved)](std::size_t winner) mutable {
        if (auto slot = asio::get_associated_cancellation_slot(resolved); slot.is_connected())
            slot.clear();
        const auto ordered = rotated_to(winner, found);
        std::move(resolved)(socket_problem(executor, ordered.begin()->endpoint().protocol()), ordered);
    });
}

} // namespace colock::inline v0::remote

/// Replaces Asio's resolver, which starts a thread at the first query, even for a numeric address. In a program with
/// one thread, that additional thread makes every mutex and every reference count as expensive as in a program with
/// many threads. This costs a tenth of a lock's CPU time (docs/benchmarks.md). This resolver starts that thread only
/// for a name. If a name has several addresses, the first that accepts a connection is returned first.
template <>
class boost::asio::ip::basic_resolver<boost::asio::ip::tcp, colock::remote::socket_executor>
{
public:
    using executor_type = colock::remote::socket_executor;
    using results_type = boost::asio::ip::tcp::resolver::results_type;

    explicit basic_resolver(const executor_type& executor) : executor_(executor) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
    void cancel()
    {
        if (name_resolver_)
            name_resolver_->cancel();
        if (const auto running = attempts_.lock())
            running->stop();
    }

    template <class CompletionToken>
    auto async_resolve(std::string_view host, std::string_view service, CompletionToken&& token)
    {
        return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, results_type)>(
            [this](auto handler, const std::string& name, const std::string& port) {
                const auto known = colock::remote::numeric_endpoint(name, port);
                if (known) {
                    const auto problem = colock::remote::socket_problem(executor_, known->protocol());
                    boost::asio::post(executor_,
                        boost::asio::append(std::move(handler), problem, results_type::create(*known, name, port)));
                    return;
                }
                if (!name_resolver_)
                    name_resolver_.emplace(executor_);
                resolve_name(name, port, std::move(handler));
            },
            token, std::string(host), std::string(service));
    }

private:
    using happy_eyeballs = colock::remote::happy_eyeballs;

    void resolve_name(const std::string& name, const std::string& port, colock::remote::resolve_handler resolved)
    {
        const auto attempts = std::make_shared<happy_eyeballs>(executor_);
        attempts_ = attempts;
        // A weak reference, to avoid a cycle: the handler keeps the slot alive, and the attempts keep the handler
        // alive.
        if (auto slot = boost::asio::get_associated_cancellation_slot(resolved); slot.is_connected()) {
            // Boost.Redis cancels when its time limit for resolving a name has passed. The attempts then end without a
            // winner, and the addresses keep their order.
            slot.assign([weak = attempts_](boost::asio::cancellation_type) {
                if (const auto running = weak.lock())
                    running->stop();
            });
        }
        name_resolver_->async_resolve(name, port,
            [executor = executor_, attempts, resolved = std::move(resolved)](
                const boost::system::error_code& failed, const results_type& found) mutable {
                if (!failed) {
                    colock::remote::complete_reachable_first(executor, *attempts, found, std::move(resolved));
                    return;
                }
                const auto problem = colock::remote::socket_problem(executor, boost::asio::ip::tcp::v4());
                std::move(resolved)(problem ? problem : failed, found);
            });
    }

    const executor_type executor_;
    std::weak_ptr<happy_eyeballs> attempts_;
    std::optional<boost::asio::ip::basic_resolver<boost::asio::ip::tcp, boost::asio::any_io_executor>> name_resolver_;
};
