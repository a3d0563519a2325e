// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/requests.hpp"

#include "zookeeper/url.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// A quarter of what a server takes unless it was told otherwise: one that is more cuts the connection of everybody.
constexpr std::size_t largest = std::size_t{256} * 1024;

} // namespace

template <class Send>
void requests::submit(bool writes, std::size_t size, replied done, Send send)
{
    if (size > largest)
        refuse(std::move(done), status::refused);
    else if (auto* const by = to_.take_request())
        send(*by, std::make_unique<request>(std::move(done), writes));
    else
        refuse(std::move(done), status::unsent);
}

void requests::refuse(replied done, status why)
{
    auto refused = std::make_unique<request>(std::move(done), false);
    refused->answer.what = why;
    to_.refuse(std::move(refused));
}

void requests::create(const std::string& path, std::string_view data, node_kind lives, replied done)
{
    submit(true, path.size() + data.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.create(path, data, lives, std::move(asked)); });
}

void requests::remove(const std::string& path, replied done)
{
    submit(true, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.remove(path, std::move(asked)); });
}

void requests::write(const std::string& path, std::string_view data, replied done)
{
    submit(true, path.size() + data.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.write(path, data, std::move(asked)); });
}

void requests::read(const std::string& path, replied done)
{
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.read(path, false, std::move(asked)); });
}

void requests::read_and_watch(const std::string& path, replied done)
{
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.read(path, true, std::move(asked)); });
}

void requests::children(const std::string& path, replied done)
{
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.children(path, false, std::move(asked)); });
}

void requests::children_and_watch(const std::string& path, replied done)
{
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.children(path, true, std::move(asked)); });
}

void requests::exists(const std::string& path, replied done)
{
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.exists(path, std::move(asked)); });
}

void requests::sync(const std::string& path, replied done)
{
    // It is answered through the leader; but by one, too, that has lost its followers.
    submit(false, path.size(), std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.sync(path, std::move(asked)); });
}

void requests::multi(const std::vector<change>& changes, replied done)
{
    std::size_t size = 0;
    for (const auto& each : changes)
        size += each.path.size() + each.data.size();
    // The driver frees what it never had if one is no path.
    const bool is_sound = std::ranges::all_of(changes, [](const change& each) { return is_path(each.path); });
    if (changes.empty() || !is_sound) {
        refuse(std::move(done), status::refused);
        return;
    }
    submit(true, size, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.multi(changes, std::move(asked)); });
}

void make_nodes(requests& by, const std::string& path)
{
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        by.create(path.substr(0, end), {}, node_kind::persistent, replied());
    by.create(path, {}, node_kind::persistent, replied());
}

} // namespace colock::zookeeper::detail
