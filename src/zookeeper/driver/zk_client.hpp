// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation_allocation.hpp"
#include "zookeeper/driver/reply.hpp"
#include "zookeeper/driver/watched_nodes.hpp"

#include <colock/clock.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <boost/intrusive/slist.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct _zhandle;

namespace colock::inline v0::zookeeper::detail {

class access_rights;

/// Base of the items that the driver reports, which are kept in the order of the reports.
struct driver_report : remote::operation_allocation, boost::intrusive::slist_base_hook<>
{
    enum class kind : unsigned char
    {
        answer,
        change,
    };

    explicit driver_report(kind report_type) noexcept : type(report_type) {}
    virtual ~driver_report() = default;

    const kind type;
};
using driver_report_list = boost::intrusive::slist<driver_report, boost::intrusive::cache_last<true>>;

struct change_report final : driver_report
{
    explicit change_report(std::string_view changed_path) : driver_report(kind::change), path(changed_path) {}
    std::string path;
};

/// A request that was sent, and its reply.
struct request : driver_report
{
    request(reply_handler handler, bool writes)
        : driver_report(kind::answer), done(std::move(handler)), is_write(writes), sent_at(lease_clock::now())
    {
    }

    reply_handler done;
    reply answer;
    bool is_write;
    /// Number of requests; more than 1 if this object is a transaction of several requests.
    int size = 1;
    lease_clock::time_point sent_at;
};

/// Wraps one handle of ZooKeeper's C client, called the driver: a session, connected or not. Never calls completions:
/// the driver's reports are kept in a list until they are taken.
///
/// All calls of the driver in this process exclude each other, because the driver keeps request numbers, log texts and
/// more in global variables.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class zk_client
{
public:
    enum class phase : unsigned char
    {
        disconnected,
        connecting,
        /// Connected, but the server has not accepted the session yet.
        greeting,
        connected,
        expired,
        denied,
    };
    enum class progress : unsigned char
    {
        done,
        /// No more data can be read now.
        nothing,
        /// The connection has ended.
        failed,
    };
    struct interest
    {
        bool failed = false;
        /// -1: the driver has no socket now; ask again later.
        int descriptor = -1;
        bool wants_write = false;
    };

    /// \param servers numeric addresses, in the format of server_list
    /// \param user empty, or the name and the password, separated by ':'
    /// \param access rights of created nodes; empty: all rights for the user, or for everybody if there is no user
    /// \throws std::bad_alloc
    zk_client(const std::string& servers, std::chrono::milliseconds session_timeout, const std::string& user,
        std::vector<access_right> access);
    ~zk_client();
    zk_client(const zk_client&) = delete;
    zk_client& operator=(const zk_client&) = delete;

    /// Closes the handle, once; afterwards only the `take_` functions may be called. Completes all requests. Blocks if
    /// a connection exists that was not shut down.
    void close() noexcept;

    /// Replaces the list of servers. Must be called while there is no connection. Keeps the old list if there is no
    /// memory.
    void use_servers(const std::string& servers);

    [[nodiscard]] phase current_phase() const noexcept;
    /// Returns whether the driver has closed its socket because a request could not be written. The driver does not
    /// report this.
    [[nodiscard]] bool has_closed_socket() const noexcept;
    /// Completes the requests that were lost when the driver closed its socket.
    void fail_all();
    [[nodiscard]] interest current_interest();
    [[nodiscard]] progress process(bool reads, bool writes);
    /// Number of requests that the driver has accepted and not completed.
    [[nodiscard]] std::size_t unanswered() const noexcept { return unanswered_; }
    [[nodiscard]] std::chrono::milliseconds session_timeout() const noexcept;
    [[nodiscard]] std::int64_t session_id() const noexcept;

    void create(const std::string& path, std::string_view data, node_kind lifetime, std::unique_ptr<request> request);
    void remove(const std::string& path, std::unique_ptr<request> request);
    void write(const std::string& path, std::string_view data, std::unique_ptr<request> request);
    /// If `watches` is true and the node exists, its next change is reported.
    void read(const std::string& path, bool watches, std::unique_ptr<request> request);
    void children(const std::string& path, bool watches, std::unique_ptr<request> request);
    void exists(const std::string& path, std::unique_ptr<request> request);
    /// Carries out all changes or none. The replies for created nodes contain no stat.
    void multi(const std::vector<change>& changes, std::unique_ptr<request> request);

    /// Removes all watches if there are so many that the server would close the next connection because of them. Then
    /// `take_missed_changes` returns true. Must be called while there is no connection.
    void drop_excessive_watches();

    [[nodiscard]] bool has_reports() const noexcept { return !reports_.empty(); }
    /// Returns the reported items, which the caller has to delete.
    [[nodiscard]] driver_report_list take_reports() noexcept;
    /// Returns whether reports of changes were lost since the last call, so that any watched node may have changed. The
    /// cause is a lack of memory, or `drop_excessive_watches`.
    [[nodiscard]] bool take_missed_changes() noexcept;
    [[nodiscard]] std::vector<std::string> take_log() noexcept;

    /// Called by the driver's callbacks.
    void on_change(const char* path) noexcept;
    void on_log(const char* text) noexcept;
    void on_answer(request& request) noexcept;

private:
    class guard;

    void track(int code, std::unique_ptr<request>&& request);

    std::unique_ptr<access_rights> rights_;
    _zhandle* driver_ = nullptr;
    driver_report_list reports_;
    std::size_t unanswered_ = 0;
    watched_nodes watched_;
    bool has_missed_changes_ = false;
    std::vector<std::string> log_;
};

} // namespace colock::inline v0::zookeeper::detail
