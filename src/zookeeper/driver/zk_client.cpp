// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/zk_client.hpp"

#include "zookeeper/driver/codes.hpp"

#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>
#include <zookeeper/zookeeper.h>

namespace colock::zookeeper::detail {

namespace {

std::mutex driver_mutex;
/// Whose call is under way.
zk_client* calling = nullptr;

node_stat stat_of(const Stat& from)
{
    return {.created_in = from.czxid,
        .modified_in = from.mzxid,
        .created_ms = from.ctime,
        .modified_ms = from.mtime,
        .ephemeral_owner = from.ephemeralOwner,
        .version = from.version,
        .children = from.numChildren,
        .children_modified_in = from.pzxid};
}

/// A transaction's, with the room that its results are written to.
struct transaction final : request
{
    using request::request;

    std::vector<zoo_op_t> operations;
    std::vector<zoo_op_result_t> results;
    std::vector<std::string> paths;
    std::vector<Stat> stats;
};

/// Nothing may be thrown through the driver: an answer that there is no memory for is none.
template <class Fill>
void answer(int code, const void* data, Fill fill) noexcept
{
    auto& asked = *static_cast<request*>(const_cast<void*>(data));
    asked.answer.code = code;
    asked.answer.what = status_of(code);
    try {
        fill(asked);
    } catch (const std::bad_alloc&) {
        asked.answer = {.what = status::unanswered, .code = ZSYSTEMERROR};
    }
    calling->on_answer(asked);
}

void on_void(int code, const void* data)
{
    answer(code, data, [](request&) {});
}

void on_path(int code, const char* value, const void* data)
{
    answer(code, data, [&](request& asked) {
        if (value && code != ZOK)
            asked.answer.text = value;
    });
}

void on_created(int code, const char* value, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& asked) {
        if (value)
            asked.answer.text = value;
        if (stat)
            asked.answer.stat = stat_of(*stat);
    });
}

void on_stat(int code, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& asked) {
        if (stat)
            asked.answer.stat = stat_of(*stat);
    });
}

void on_data(int code, const char* value, int size, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& asked) {
        // Of a node without data it is negative.
        if (value && size > 0)
            asked.answer.text.assign(value, static_cast<std::size_t>(size));
        if (stat)
            asked.answer.stat = stat_of(*stat);
    });
}

void on_children(int code, const String_vector* names, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& asked) {
        if (names)
            asked.answer.children =
                std::make_shared<folder_children>(std::vector<std::string>(names->data, names->data + names->count));
        if (stat)
            asked.answer.stat = stat_of(*stat);
    });
}

void on_transaction(int code, const void* data)
{
    answer(code, data, [](request& asked) {
        auto& all = static_cast<transaction&>(asked);
        all.answer.members.reserve(all.results.size());
        for (std::size_t i = 0; i < all.results.size(); ++i) {
            const auto own = all.results[i].err;
            all.answer.members.push_back(
                {.what = status_of(own), .code = own, .text = all.paths[i].c_str(), .stat = stat_of(all.stats[i])});
        }
    });
}

void on_event(_zhandle*, int type, int, const char* path, void*)
{
    // Of the session we hear by its state.
    if (type != ZOO_SESSION_EVENT)
        calling->on_change(path);
}

void on_text(const char* text)
{
    if (calling)
        calling->on_log(text);
}

int mode_of(node_kind lives)
{
    switch (lives) {
    case node_kind::persistent:
        return ZOO_PERSISTENT;
    case node_kind::container:
        return ZOO_CONTAINER;
    case node_kind::ephemeral:
        return ZOO_EPHEMERAL;
    case node_kind::ephemeral_sequential:
        return ZOO_EPHEMERAL_SEQUENTIAL;
    }
    return ZOO_PERSISTENT;
}

} // namespace

/// Of one call of the driver.
class zk_client::guard
{
public:
    explicit guard(zk_client& who) : lock_(driver_mutex) { calling = &who; }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { calling = nullptr; }

private:
    std::lock_guard<std::mutex> lock_;
};

/// As the driver wants them.
struct zk_client::rights
{
    explicit rights(std::vector<access_right> access) : given(std::move(access)), entries(given.size())
    {
        for (std::size_t i = 0; i < given.size(); ++i)
            entries[i] = {
                static_cast<std::int32_t>(given[i].permissions), {given[i].scheme.data(), given[i].id.data()}};
        all = {static_cast<std::int32_t>(entries.size()), entries.data()};
    }

    std::vector<access_right> given;
    std::vector<ACL> entries;
    ACL_vector all{};
};

zk_client::zk_client(const std::string& servers, std::chrono::milliseconds session_timeout, const std::string& user,
    std::vector<access_right> access)
{
    if (access.empty())
        access.push_back(user.empty() ? access_right{} : access_right{.scheme = "auth", .id = ""});
    rights_ = std::make_unique<rights>(std::move(access));
    const guard driving(*this);
    // It would seed random(), which is the program's, to shuffle the list.
    zoo_deterministic_conn_order(1);
    driver_ = zookeeper_init2(servers.c_str(), &on_event, static_cast<int>(session_timeout.count()), nullptr, this,
        ZOO_NO_LOG_CLIENTENV, &on_text);
    zoo_deterministic_conn_order(0);
    if (!driver_)
        throw std::bad_alloc();
    // Else it would look up its servers' names at every turn, and block.
    zoo_set_servers_resolution_delay(driver_, -1);
    if (!user.empty())
        zoo_add_auth(driver_, "digest", user.data(), static_cast<int>(user.size()), nullptr, nullptr);
}

zk_client::~zk_client()
{
    close();
    take_told().clear_and_dispose(std::default_delete<told>());
}

void zk_client::close() noexcept
{
    const guard driving(*this);
    if (driver_)
        zookeeper_close(std::exchange(driver_, nullptr));
}

zk_client::phase zk_client::now() const noexcept
{
    const auto state = zoo_state(driver_);
    if (state == ZOO_CONNECTED_STATE)
        return phase::connected;
    if (state == ZOO_ASSOCIATING_STATE)
        return phase::greeting;
    if (state == ZOO_CONNECTING_STATE)
        return phase::connecting;
    if (state == ZOO_EXPIRED_SESSION_STATE)
        return phase::expired;
    if (state == ZOO_AUTH_FAILED_STATE)
        return phase::denied;
    return phase::disconnected;
}

bool zk_client::has_hung_up() const noexcept
{
    // Its state before the first connection, and after this; after an ordinary end it is another one.
    return zoo_state(driver_) == ZOO_NOTCONNECTED_STATE;
}

void zk_client::use_servers(const std::string& servers)
{
    const guard driving(*this);
    static_cast<void>(zoo_set_servers(driver_, servers.c_str()));
}

void zk_client::fail_all()
{
    const guard driving(*this);
    // What was not written is kept for the next connection, the rest of a half written request first. That connection
    // is given up before anything is sent on it: this is what makes the driver tell the requests.
    for (int i = 0; i < 3; ++i) {
        int descriptor = -1;
        int events = 0;
        timeval delay{};
        if (zookeeper_interest(driver_, &descriptor, &events, &delay) != ZOK)
            return;
        if (descriptor == -1)
            continue;
        ::shutdown(descriptor, SHUT_RDWR);
        if (const auto code = zookeeper_process(driver_, ZOOKEEPER_READ | ZOOKEEPER_WRITE); code != ZOK)
            return;
    }
}

zk_client::interest zk_client::wants()
{
    const guard driving(*this);
    interest found;
    int events = 0;
    timeval delay{};
    found.failed = zookeeper_interest(driver_, &found.descriptor, &events, &delay) != ZOK;
    // After a failure it tells the number of a socket that it has closed.
    if (found.failed)
        found.descriptor = -1;
    found.wants_write = (events & ZOOKEEPER_WRITE) != 0;
    return found;
}

zk_client::progress zk_client::process(bool reads, bool writes)
{
    const guard driving(*this);
    const auto code = zookeeper_process(driver_, (reads ? ZOOKEEPER_READ : 0) | (writes ? ZOOKEEPER_WRITE : 0));
    if (code == ZOK)
        return progress::done;
    return code == ZNOTHING ? progress::nothing : progress::failed;
}

std::chrono::milliseconds zk_client::session_timeout() const noexcept
{
    return std::chrono::milliseconds(zoo_recv_timeout(driver_));
}

std::int64_t zk_client::session_id() const noexcept
{
    return zoo_client_id(driver_)->client_id;
}

void zk_client::dispose(int refused, std::unique_ptr<request>&& asked)
{
    if (refused == ZOK) {
        // The driver's, until it is answered.
        static_cast<void>(asked.release());
        ++unanswered_;
        return;
    }
    asked->answer.code = refused;
    asked->answer.what = refused == ZINVALIDSTATE ? status::ended : status::unsent;
    told_.push_back(*asked.release());
}

void zk_client::create(const std::string& path, std::string_view data, node_kind lives, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    const auto code = zoo_acreate2(driver_, path.c_str(), data.data(), static_cast<int>(data.size()), &rights_->all,
        mode_of(lives), &on_created, asked.get());
    dispose(code, std::move(asked));
}

void zk_client::remove(const std::string& path, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    dispose(zoo_adelete(driver_, path.c_str(), -1, &on_void, asked.get()), std::move(asked));
}

void zk_client::write(const std::string& path, std::string_view data, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    const auto code =
        zoo_aset(driver_, path.c_str(), data.data(), static_cast<int>(data.size()), -1, &on_stat, asked.get());
    dispose(code, std::move(asked));
}

void zk_client::read(const std::string& path, bool watches, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    if (watches)
        watched_.add(path, watched_nodes::kind::data);
    const auto code = zoo_awget(driver_, path.c_str(), watches ? &on_event : nullptr, this, &on_data, asked.get());
    dispose(code, std::move(asked));
}

void zk_client::children(const std::string& path, bool watches, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    if (watches)
        watched_.add(path, watched_nodes::kind::children);
    const auto code =
        zoo_awget_children2(driver_, path.c_str(), watches ? &on_event : nullptr, this, &on_children, asked.get());
    dispose(code, std::move(asked));
}

void zk_client::exists(const std::string& path, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    dispose(zoo_aexists(driver_, path.c_str(), 0, &on_stat, asked.get()), std::move(asked));
}

void zk_client::sync(const std::string& path, std::unique_ptr<request> asked)
{
    const guard driving(*this);
    dispose(zoo_async(driver_, path.c_str(), &on_path, asked.get()), std::move(asked));
}

void zk_client::multi(const std::vector<change>& changes, std::unique_ptr<request> asked)
{
    // The number that the server appends has at most eleven characters.
    constexpr std::size_t room = 12;
    auto all = std::make_unique<transaction>(std::move(asked->done), true);
    all->size = asked->size;
    all->operations.resize(changes.size());
    all->results.resize(changes.size());
    all->paths.resize(changes.size());
    all->stats.resize(changes.size());
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto& each = changes[i];
        auto& operation = all->operations[i];
        const auto size = static_cast<int>(each.data.size());
        switch (each.what) {
        case change::kind::create:
            all->paths[i].resize(each.path.size() + room);
            zoo_create_op_init(&operation, each.path.c_str(), each.data.data(), size, &rights_->all,
                mode_of(each.lives), all->paths[i].data(), static_cast<int>(all->paths[i].size()));
            break;
        case change::kind::remove:
            zoo_delete_op_init(&operation, each.path.c_str(), -1);
            break;
        case change::kind::write:
            zoo_set_op_init(&operation, each.path.c_str(), each.data.data(), size, -1, &all->stats[i]);
            break;
        }
    }
    const guard driving(*this);
    const auto code = zoo_amulti(driver_, static_cast<int>(changes.size()), all->operations.data(), all->results.data(),
        &on_transaction, all.get());
    dispose(code, std::move(all));
}

void zk_client::forget_watches()
{
    if (!watched_.too_many())
        return;
    const guard driving(*this);
    // Never called: no server is asked.
    void_completion_t completed = &on_void;
    for (const auto& [path, what] : watched_.take_all()) {
        const auto type = what == watched_nodes::kind::data ? ZWATCHTYPE_DATA : ZWATCHTYPE_CHILD;
        zoo_aremove_all_watches(driver_, path.c_str(), type, 1, &completed, nullptr);
    }
    missed_ = true;
}

told_list zk_client::take_told() noexcept
{
    return std::exchange(told_, told_list());
}

bool zk_client::take_missed() noexcept
{
    return std::exchange(missed_, false);
}

std::vector<std::string> zk_client::take_log() noexcept
{
    return std::exchange(log_, {});
}

void zk_client::on_change(const char* path) noexcept
{
    try {
        watched_.changed(path);
        told_.push_back(*new told_change(path));
    } catch (const std::bad_alloc&) {
        missed_ = true;
    }
}

void zk_client::on_log(const char* text) noexcept
{
    try {
        // Of what a driver that goes round in circles says, the first lines tell why. Nobody decides by it.
        if (log_.size() < 64)
            log_.emplace_back(text);
    } catch (const std::bad_alloc&) {
    }
}

void zk_client::on_answer(request& which) noexcept
{
    --unanswered_;
    told_.push_back(which);
}

} // namespace colock::zookeeper::detail
