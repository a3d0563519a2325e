// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/settings.hpp"

#include "net/url_option_parser.hpp"
#include "util/option_errors.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

using std::chrono::milliseconds;

constexpr auto backend = "zookeeper";

void check_range(const char* name, milliseconds value, milliseconds from)
{
    colock::detail::check_range(backend, name, value, from, std::chrono::hours(1));
}

} // namespace

settings::settings(const options& options)
    : session{.target = parse_url(options.url),
          .access = options.access,
          .session_timeout = options.session_timeout,
          .server_tick = options.server_tick,
          .smallest_timeout = options.smallest_session_timeout,
          .connect_timeout = options.connect_timeout},
      layout(options.layout), operation_timeout(options.operation_timeout), idle_timeout(options.idle_timeout)
{
    auto& target = session.target;
    remote::use_program_value(target.user, options.user, "user", backend);
    remote::use_program_value(target.password, options.password, "password", backend);
    if (target.user.empty() != target.password.empty())
        colock::detail::refuse_options(backend, "a user is given without a password, or a password without a user");
    if (target.user.find(':') != std::string::npos)
        colock::detail::refuse_options(
            backend, "the user contains a colon, which ZooKeeper does not allow in user names");

    for (const auto& each : options.access) {
        if (each.scheme.empty() || each.permissions == 0 || each.permissions > access_right::all)
            colock::detail::refuse_options(
                backend, "an entry of access has no scheme, no permissions, or unknown permissions");
    }

    check_range("session_timeout", session.session_timeout, milliseconds(1000));
    check_range("operation_timeout", operation_timeout, milliseconds(10));
    check_range("connect_timeout", session.connect_timeout, milliseconds(10));
    if (session.server_tick)
        check_range("server_tick", *session.server_tick, milliseconds(1));
    if (session.smallest_timeout)
        check_range("smallest_session_timeout", *session.smallest_timeout, milliseconds(100));
    if (idle_timeout < milliseconds::zero()) {
        colock::detail::refuse_options(backend, "idle_timeout is " + colock::detail::in_words(idle_timeout) +
                                                    "; give 0 to close at once, or milliseconds::max() to stay "
                                                    "connected");
    }
}

std::string settings::address() const
{
    std::string all;
    for (const auto& each : session.target.servers)
        all += (all.empty() ? "" : ",") + remote::to_text(each);
    return all;
}

} // namespace colock::inline v0::zookeeper::detail
