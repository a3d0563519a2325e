// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session_runtime.hpp"

#include <algorithm>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// A quarter of what a server takes unless it was told otherwise: one that is more cuts the connection of everybody.
constexpr std::size_t largest = std::size_t{256} * 1024;

} // namespace

template <class Send>
void session::submit(bool writes, replied done, Send send)
{
    if (!connected() || handle_->has_hung_up()) {
        refuse(std::move(done), status::unsent);
        return;
    }
    hold_back();
    send(*handle_, std::make_unique<request>(std::move(done), writes));
}

/// Requests of one turn go out together.
void session::hold_back()
{
    auto& run = *runtime_;
    if (!std::exchange(run.corked, true))
        run.socket.cork(true);
    if (!run.stepping)
        post_step();
}

void session::refuse(replied done, status why)
{
    auto refused = std::make_unique<request>(std::move(done), false);
    refused->answer.what = why;
    told_.push_back(*refused.release());
    if (runtime_)
        post_step();
}

void session::create(const std::string& path, std::string_view data, node_kind lives, replied done)
{
    if (path.size() + data.size() > largest) {
        refuse(std::move(done), status::refused);
        return;
    }
    submit(true, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.create(path, data, lives, std::move(asked)); });
}

void session::remove(const std::string& path, replied done)
{
    submit(
        true, std::move(done), [&](handle& by, std::unique_ptr<request> asked) { by.remove(path, std::move(asked)); });
}

void session::write(const std::string& path, std::string_view data, replied done)
{
    if (path.size() + data.size() > largest) {
        refuse(std::move(done), status::refused);
        return;
    }
    submit(true, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.write(path, data, std::move(asked)); });
}

void session::read(const std::string& path, replied done)
{
    submit(false, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.read(path, false, std::move(asked)); });
}

void session::read_and_watch(const std::string& path, replied done)
{
    submit(false, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.read(path, true, std::move(asked)); });
}

void session::children(const std::string& path, replied done)
{
    submit(false, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.children(path, false, std::move(asked)); });
}

void session::children_and_watch(const std::string& path, replied done)
{
    submit(false, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.children(path, true, std::move(asked)); });
}

void session::exists(const std::string& path, replied done)
{
    submit(
        false, std::move(done), [&](handle& by, std::unique_ptr<request> asked) { by.exists(path, std::move(asked)); });
}

void session::sync(const std::string& path, replied done)
{
    // It is answered through the leader; but by one, too, that has lost its followers.
    submit(
        false, std::move(done), [&](handle& by, std::unique_ptr<request> asked) { by.sync(path, std::move(asked)); });
}

void session::multi(const std::vector<change>& changes, replied done)
{
    std::size_t size = 0;
    for (const auto& each : changes)
        size += each.path.size() + each.data.size();
    // The driver frees what it never had if one is no path.
    const bool is_sound = std::ranges::all_of(changes, [](const change& each) { return is_path(each.path); });
    if (changes.empty() || size > largest || !is_sound) {
        refuse(std::move(done), status::refused);
        return;
    }
    submit(true, std::move(done),
        [&](handle& by, std::unique_ptr<request> asked) { by.multi(changes, std::move(asked)); });
}

void session::send_beat()
{
    write(clock_, {}, [self = shared_from_this()](const reply& answer) { self->beat_answered(answer); });
}

void session::beat_answered(const reply& answer)
{
    heart_.beat_ended(lease_clock::now());
    if (answer.what == status::no_node)
        make_nodes();
    if (answer.what != status::access_denied)
        return;
    announced_.push_back(news::denied);
    post_step();
}

/// The folders that all of ours are in, and what beats write to.
void session::make_nodes()
{
    for (std::size_t end = clock_.find('/', 1); end != std::string::npos; end = clock_.find('/', end + 1))
        create(clock_.substr(0, end), {}, node_kind::persistent, replied());
    create(clock_, {}, node_kind::persistent, replied());
}

} // namespace colock::zookeeper::detail
