// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/url.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

constexpr std::size_t max_chroot_size = 255;

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

location parse_url(std::string_view url)
{
    const remote::url from(url, "zookeeper", "zookeeper://host:port");
    if (from.scheme() != "zookeeper")
        from.refuse("the URL's scheme is not zookeeper");
    if (!from.parameters().empty())
        from.refuse("the URL has parameters or a fragment; a '?' or '#' in a password is written %3F or %23");

    location where;
    auto [user, password] = from.credentials();
    if (user.empty() ? password.has_value() : !password || password->empty())
        from.refuse("the URL has a user without a password, or a password without a user");
    if (user.find(':') != std::string::npos)
        from.refuse("the URL's user contains a colon, which ZooKeeper does not allow in user names");
    where.user = std::move(user);
    where.password = std::move(password).value_or("");
    where.servers = from.hosts("2181");
    if (!from.path().empty())
        where.chroot = parse_chroot(from);
    return where;
}

} // namespace colock::inline v0::zookeeper::detail
