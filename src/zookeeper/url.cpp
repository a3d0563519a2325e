// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/url.hpp"

#include "net/url_option_parser.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

using remote::set_choice;
using remote::set_member;

constexpr std::size_t max_chroot_size = 255;

/// Names of the layouts, in the order of the enumerators.
constexpr std::string_view layouts[] = {"standard", "curator_mutex", "curator_read_write"};

constexpr remote::url_option<options> all_options[] = {
    {"layout", set_choice<layouts, &options::layout>},
    {"session_timeout", set_member<&options::session_timeout>},
    {"smallest_session_timeout", set_member<&options::smallest_session_timeout>},
    {"server_tick", set_member<&options::server_tick>},
    {"operation_timeout", set_member<&options::operation_timeout>},
    {"connect_timeout", set_member<&options::connect_timeout>},
    {"idle_timeout", set_member<&options::idle_timeout>},
};

remote::url split_url(std::string_view text)
{
    return {text, "zookeeper", "zookeeper://host:port"};
}

bool is_component(std::string_view name)
{
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
    return !name.empty() && name != "." && name != ".." && std::ranges::all_of(name, is_plain);
}

std::string parse_chroot(const remote::url& from)
{
    auto path = from.path();
    if (path.ends_with('/'))
        path.remove_suffix(1);
    std::string chroot;
    for (const auto each : remote::split(path, '/')) {
        const auto name = from.decode(each, "path");
        if (name.find('/') != std::string::npos)
            from.refuse("the URL's path contains an encoded '/', which is not allowed in the name of a node");
        (chroot += '/') += name;
    }
    if (!is_path(chroot) || chroot.size() > max_chroot_size)
        from.refuse(
            "the URL's path is not a valid path of a node: at most 255 printable ASCII characters, without an empty "
            "component, '.' or '..'");
    if (chroot == "/zookeeper" || chroot.starts_with("/zookeeper/"))
        from.refuse("the URL's path is under /zookeeper, which is reserved for the server");
    return chroot;
}

} // namespace

bool is_path(std::string_view path)
{
    if (!path.starts_with('/'))
        return false;
    return std::ranges::all_of(remote::split(path.substr(1), '/'), is_component);
}

options take_url_options(options options)
{
    const auto text = std::exchange(options.url, {});
    options.url = remote::take_url_options(split_url(text), all_options, options);
    return options;
}

location parse_url(std::string_view url)
{
    const auto from = split_url(url);
    if (from.scheme() != "zookeeper")
        from.refuse("the URL's scheme is not zookeeper");
    from.refuse_parameters(remote::names_of(all_options));

    location target;
    auto [user, password] = from.credentials();
    if (password && (user.empty() || password->empty()))
        from.refuse("the URL has a user with an empty password, or a password without a user");
    if (user.find(':') != std::string::npos)
        from.refuse("the URL's user contains a colon, which ZooKeeper does not allow in user names");
    target.user = std::move(user);
    target.password = std::move(password).value_or("");
    target.servers = from.hosts("2181");
    if (!from.path().empty())
        target.chroot = parse_chroot(from);
    return target;
}

} // namespace colock::inline v0::zookeeper::detail
