// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/happy_eyeballs.hpp"
#include "net/name_lookup.hpp"

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

/// \pre `service` is a port number
[[nodiscard]] inline addresses with_port(const name_result& found, const std::string& name, const std::string& service)
{
    std::uint16_t port = 0;
    std::from_chars(service.data(), service.data() + service.size(), port);
    std::vector<asio::ip::tcp::endpoint> endpoints;
    for (const auto& each : found.addresses)
        endpoints.emplace_back(each, port);
    return addresses::create(endpoints.begin(), endpoints.end(), name, service);
}

inline void stop_resolving(const std::weak_ptr<name_lookup>& lookup, const std::weak_ptr<happy_eyeballs>& attempts)
{
    if (const auto running = lookup.lock())
        running->cancel();
    if (const auto running = attempts.lock())
        running->stop();
}

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
/// many threads. This costs a tenth of a lock's CPU time (docs/benchmarks.md). With Asio's resolver, a name that the
/// name service answers late also delays all other names of the execution context. This resolver needs threads only for
/// names, and looks up several names at the same time. If a name has several addresses, the first that accepts a
/// connection is returned first.
template <>
class boost::asio::ip::basic_resolver<boost::asio::ip::tcp, colock::remote::socket_executor>
{
public:
    using executor_type = colock::remote::socket_executor;
    using results_type = boost::asio::ip::tcp::resolver::results_type;

    explicit basic_resolver(const executor_type& executor) : executor_(executor) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
    void cancel() { colock::remote::stop_resolving(lookup_, attempts_); }

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
                resolve_name(name, port, std::move(handler));
            },
            token, std::string(host), std::string(service));
    }

private:
    using happy_eyeballs = colock::remote::happy_eyeballs;

    void resolve_name(const std::string& name, const std::string& port, colock::remote::resolve_handler resolved)
    {
        const auto lookup = std::make_shared<colock::remote::name_lookup>(executor_);
        const auto attempts = std::make_shared<happy_eyeballs>(executor_);
        lookup_ = lookup;
        attempts_ = attempts;
        // Weak references, to avoid a cycle: the handler keeps the slot alive, and the operations keep the handler
        // alive.
        if (auto slot = boost::asio::get_associated_cancellation_slot(resolved); slot.is_connected()) {
            // Boost.Redis cancels when its time limit for resolving a name has passed. The attempts then end without a
            // winner, and the addresses keep their order.
            slot.assign([lookup = lookup_, attempts = attempts_](
                            boost::asio::cancellation_type) { colock::remote::stop_resolving(lookup, attempts); });
        }
        // Without a free descriptor, the lookup itself reports that.
        lookup->start(name, [executor = executor_, attempts, name, port, resolved = std::move(resolved)](
                                const colock::remote::name_result& found) mutable {
            if (found.failure)
                std::move(resolved)(found.failure, results_type());
            else
                colock::remote::complete_reachable_first(
                    executor, *attempts, colock::remote::with_port(found, name, port), std::move(resolved));
        });
    }

    const executor_type executor_;
    std::weak_ptr<colock::remote::name_lookup> lookup_;
    std::weak_ptr<happy_eyeballs> attempts_;
};
