// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor.hpp"

#include "command/doctor/lock_probe.hpp"
#include "command/doctor/report.hpp"
#include "command/doctor/servers.hpp"
#include "command/exit_code.hpp"
#include "command/terminal.hpp"
#include "net/url.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace command {

namespace {

std::vector<finding> examine_servers(const backend_address& address, std::string_view scheme, const lock_probe& probe)
{
#ifdef COLOCK_BUILT_REDIS
    if (scheme.starts_with("redis"))
        return examine_redis(address, probe);
#endif
#ifdef COLOCK_BUILT_ZOOKEEPER
    if (scheme == "zookeeper")
        return examine_zookeeper(address, probe);
#endif
#ifdef COLOCK_BUILT_MONGO
    if (scheme == "mongodb")
        return examine_mongo(address, probe);
#endif
    static_cast<void>(address), static_cast<void>(scheme), static_cast<void>(probe);
    return {};
}

struct backend_report
{
    std::vector<finding> lines;
    /// The error, if the backend cannot be reached or does not answer.
    std::exception_ptr unavailable;
};

/// Checks one backend. A node of a quorum is a backend of its own.
backend_report examine_backend(
    const invocation& call, const backend_address& address, std::string_view scheme, std::string_view name)
{
    const lock_probe probe = probe_lock(call, address);
    auto lines = examine(name, lock_checks(), probe.values);
    append(lines, examine_servers(address, scheme, probe));
    return {.lines = std::move(lines), .unavailable = probe.unavailable};
}

} // namespace

void add_doctor_options(program_options::options_description& options)
{
    options.add_options()("json", program_options::bool_switch(), "print one JSON object for each check");
}

int doctor(const invocation& call)
{
    if (!call.words.empty())
        throw usage_error("colock doctor takes no words; remove '" + call.words.front() + "'");
    const backend_address address = address_of(call);
    const colock::remote::url url(address.url, "colock", "redis://host");
    backend_report report;
    const auto scheme = url.scheme();
    if (scheme.ends_with("+quorum")) {
        const auto node_scheme = scheme.substr(0, scheme.find('+'));
        const auto hosts = url.hosts("6379");
        const auto nodes = url.split_by_host(node_scheme);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            append(report.lines, examine_backend(call, {.url = nodes[i], .password = address.password}, node_scheme,
                                     colock::remote::to_text(hosts[i]))
                                     .lines);
        }
        const lock_probe whole = probe_lock(call, address);
        report.unavailable = whole.unavailable;
        append(report.lines, examine("quorum", lock_checks(), whole.values));
    } else {
        report = examine_backend(call, address, scheme, scheme.substr(0, scheme.find('+')));
    }
    if (call.flag("json"))
        print_json(std::cout, report.lines);
    else
        print_table(std::cout, report.lines, use_colours(STDOUT_FILENO));
    std::cout.flush();
    if (report.unavailable)
        std::rethrow_exception(report.unavailable);
    const bool has_failed =
        std::ranges::any_of(report.lines, [](const finding& each) { return each.result == verdict::fail; });
    return has_failed ? failure : success;
}

} // namespace command
