// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/zk_client.hpp"

#include "zookeeper/driver/access_rights.hpp"
#include "zookeeper/driver/node_conversions.hpp"
#include "zookeeper/driver/status.hpp"
#include "zookeeper/driver/transaction.hpp"

#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>
#include <zookeeper/zookeeper.h>

namespace colock::inline v0::zookeeper::detail {

namespace {

std::mutex driver_mutex;
/// The client whose call of the driver is running.
zk_client* calling = nullptr;

/// No exception may pass through the driver. A reply that there is no memory for counts as unanswered.
template <class Fill>
void answer(int code, const void* data, Fill fill) noexcept
{
    auto& answered_request = *static_cast<request*>(const_cast<void*>(data));
    answered_request.answer.code = code;
    answered_request.answer.outcome = status_of(code);
    try {
        fill(answered_request);
    } catch (const std::bad_alloc&) {
        answered_request.answer = {.outcome = status::unanswered, .code = ZSYSTEMERROR};
    }
    calling->on_answer(answered_request);
}

void on_void(int code, const void* data)
{
    answer(code, data, [](request&) {});
}

void on_created(int code, const char* value, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& request) {
        if (value)
            request.answer.text = value;
        if (stat)
            request.answer.stat = stat_of(*stat);
    });
}

void on_stat(int code, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& request) {
        if (stat)
            request.answer.stat = stat_of(*stat);
    });
}

void on_data(int code, const char* value, int size, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& request) {
        // The size is negative for a node without data.
        if (value && size > 0)
            request.answer.text.assign(value, static_cast<std::size_t>(size));
        if (stat)
            request.answer.stat = stat_of(*stat);
    });
}

void on_children(int code, const String_vector* names, const Stat* stat, const void* data)
{
    answer(code, data, [&](request& request) {
        if (names)
            request.answer.children =
                std::make_shared<folder_children>(std::vector<std::string>(names->data, names->data + names->count));
        if (stat)
            request.answer.stat = stat_of(*stat);
    });
}

void on_transaction(int code, const void* data)
{
    answer(code, data, [](request& request) { static_cast<transaction&>(request).take_results(); });
}

void on_event(_zhandle*, int type, int, const char* path, void*)
{
    // Session events are not needed: `current_phase` reads the state of the session.
    if (type != ZOO_SESSION_EVENT)
        calling->on_change(path);
}

void on_text(const char* text)
{
    if (calling)
        calling->on_log(text);
}

} // namespace

/// Protects one call of the driver, and tells the driver's callbacks which client it belongs to.
class zk_client::guard
{
public:
    explicit guard(zk_client& client) : lock_(driver_mutex) { calling = &client; }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { calling = nullptr; }

private:
    std::lock_guard<std::mutex> lock_;
};

zk_client::zk_client(const std::string& servers, std::chrono::milliseconds session_timeout, const std::string& user,
    std::vector<access_right> access)
    : rights_(std::make_unique<access_rights>(std::move(access), !user.empty()))
{
    const guard lock(*this);
    // Keeps the driver from shuffling the servers, for which it would seed the program's random().
    zoo_deterministic_conn_order(1);
    driver_ = zookeeper_init2(servers.c_str(), &on_event, static_cast<int>(session_timeout.count()), nullptr, this,
        ZOO_NO_LOG_CLIENTENV, &on_text);
    zoo_deterministic_conn_order(0);
    if (!driver_)
        throw std::bad_alloc();
    // Otherwise the driver would resolve the servers' names again and again, and block.
    zoo_set_servers_resolution_delay(driver_, -1);
    if (!user.empty())
        zoo_add_auth(driver_, "digest", user.data(), static_cast<int>(user.size()), nullptr, nullptr);
}

zk_client::~zk_client()
{
    close();
    take_reports().clear_and_dispose(std::default_delete<driver_report>());
}

void zk_client::close() noexcept
{
    const guard lock(*this);
    if (driver_)
        zookeeper_close(std::exchange(driver_, nullptr));
}

zk_client::phase zk_client::current_phase() const noexcept
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

bool zk_client::has_closed_socket() const noexcept
{
    // The driver is in this state before the first connection, and after it has closed its socket because a write has
    // failed. The loss of a connection leads to another state.
    return zoo_state(driver_) == ZOO_NOTCONNECTED_STATE;
}

void zk_client::use_servers(const std::string& servers)
{
    const guard lock(*this);
    static_cast<void>(zoo_set_servers(driver_, servers.c_str()));
}

void zk_client::fail_all()
{
    const guard lock(*this);
    // The driver keeps unwritten requests for the next connection, beginning with the rest of a partially written one.
    // That connection is shut down before anything is sent on it, which makes the driver complete the requests.
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

zk_client::interest zk_client::current_interest()
{
    const guard lock(*this);
    interest found;
    int events = 0;
    timeval delay{};
    found.failed = zookeeper_interest(driver_, &found.descriptor, &events, &delay) != ZOK;
    // After a failure the driver returns the number of a socket that it has closed.
    if (found.failed)
        found.descriptor = -1;
    found.wants_write = (events & ZOOKEEPER_WRITE) != 0;
    return found;
}

zk_client::progress zk_client::process(bool reads, bool writes)
{
    const guard lock(*this);
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

void zk_client::track(int code, std::unique_ptr<request>&& request)
{
    if (code == ZOK) {
        // The driver owns the request until it is answered.
        static_cast<void>(request.release());
        ++unanswered_;
        return;
    }
    // In the state ZINVALIDSTATE the session has ended, and the next session takes the request.
    request->answer.code = code == ZINVALIDSTATE ? 0 : code;
    request->answer.outcome = status::unsent;
    reports_.push_back(*request.release());
}

void zk_client::create(
    const std::string& path, std::string_view data, node_kind lifetime, std::unique_ptr<request> request)
{
    const guard lock(*this);
    const auto code = zoo_acreate2(driver_, path.c_str(), data.data(), static_cast<int>(data.size()), &rights_->list(),
        mode_of(lifetime), &on_created, request.get());
    track(code, std::move(request));
}

void zk_client::remove(const std::string& path, std::unique_ptr<request> request)
{
    const guard lock(*this);
    track(zoo_adelete(driver_, path.c_str(), -1, &on_void, request.get()), std::move(request));
}

void zk_client::write(const std::string& path, std::string_view data, std::unique_ptr<request> request)
{
    const guard lock(*this);
    const auto code =
        zoo_aset(driver_, path.c_str(), data.data(), static_cast<int>(data.size()), -1, &on_stat, request.get());
    track(code, std::move(request));
}

void zk_client::read(const std::string& path, bool watches, std::unique_ptr<request> request)
{
    const guard lock(*this);
    if (watches)
        watched_.add(path, watched_nodes::kind::data);
    const auto code = zoo_awget(driver_, path.c_str(), watches ? &on_event : nullptr, this, &on_data, request.get());
    track(code, std::move(request));
}

void zk_client::children(const std::string& path, bool watches, std::unique_ptr<request> request)
{
    const guard lock(*this);
    if (watches)
        watched_.add(path, watched_nodes::kind::children);
    const auto code =
        zoo_awget_children2(driver_, path.c_str(), watches ? &on_event : nullptr, this, &on_children, request.get());
    track(code, std::move(request));
}

void zk_client::exists(const std::string& path, std::unique_ptr<request> request)
{
    const guard lock(*this);
    track(zoo_aexists(driver_, path.c_str(), 0, &on_stat, request.get()), std::move(request));
}

void zk_client::multi(const std::vector<change>& changes, std::unique_ptr<request> request)
{
    auto all = std::make_unique<transaction>(*request, changes, rights_->list());
    const guard lock(*this);
    const auto code = all->send(driver_, &on_transaction);
    track(code, std::move(all));
}

void zk_client::drop_excessive_watches()
{
    if (!watched_.is_too_large())
        return;
    const guard lock(*this);
    // The driver never calls this completion, because it removes the watches without a request to the server.
    void_completion_t completed = &on_void;
    for (const auto& [path, kind] : watched_.take_all()) {
        const auto type = kind == watched_nodes::kind::data ? ZWATCHTYPE_DATA : ZWATCHTYPE_CHILD;
        zoo_aremove_all_watches(driver_, path.c_str(), type, 1, &completed, nullptr);
    }
    has_missed_changes_ = true;
}

driver_report_list zk_client::take_reports() noexcept
{
    return std::exchange(reports_, driver_report_list());
}

bool zk_client::take_missed_changes() noexcept
{
    return std::exchange(has_missed_changes_, false);
}

std::vector<std::string> zk_client::take_log() noexcept
{
    return std::exchange(log_, {});
}

void zk_client::on_change(const char* path) noexcept
{
    try {
        watched_.changed(path);
        reports_.push_back(*new change_report(path));
    } catch (const std::bad_alloc&) {
        has_missed_changes_ = true;
    }
}

void zk_client::on_log(const char* text) noexcept
{
    try {
        // A driver that fails again and again logs without end; the first lines contain the reason. No decision depends
        // on the log.
        if (log_.size() < 64)
            log_.emplace_back(text);
    } catch (const std::bad_alloc&) {
    }
}

void zk_client::on_answer(request& request) noexcept
{
    --unanswered_;
    reports_.push_back(request);
}

} // namespace colock::inline v0::zookeeper::detail
