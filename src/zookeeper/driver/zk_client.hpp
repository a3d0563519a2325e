// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation_allocation.hpp"
#include "zookeeper/driver/reply.hpp"
#include "zookeeper/recipe/watched_nodes.hpp"

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

namespace colock::zookeeper::detail {

/// What the driver tells, in the order in which it was told.
struct told : remote::operation_allocation, boost::intrusive::slist_base_hook<>
{
    enum class kind : unsigned char
    {
        answer,
        change,
    };

    explicit told(kind which) noexcept : what(which) {}
    virtual ~told() = default;

    const kind what;
};
using told_list = boost::intrusive::slist<told, boost::intrusive::cache_last<true>>;

struct told_change final : told
{
    explicit told_change(std::string_view where) : told(kind::change), path(where) {}
    std::string path;
};

/// Sent, and told when it is answered.
struct request : told
{
    request(replied then, bool is_write)
        : told(kind::answer), done(std::move(then)), writes(is_write), sent(lease_clock::now())
    {
    }

    replied done;
    reply answer;
    bool writes;
    /// Of how many it tells.
    int size = 1;
    lease_clock::time_point sent;
};

/// One of the C client's handles: a session, connected or not. It calls nobody: what it is told by the driver stands in
/// a list until it is taken.
///
/// All calls of the driver in this process exclude each other: numbers of requests, texts of logs and more of it live
/// in variables that all handles share.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class zk_client
{
public:
    enum class phase : unsigned char
    {
        disconnected,
        connecting,
        /// Connected; the server has not taken the session on yet.
        greeting,
        connected,
        expired,
        denied,
    };
    enum class progress : unsigned char
    {
        done,
        /// There is nothing more to be read.
        nothing,
        /// The connection has ended.
        failed,
    };
    struct interest
    {
        bool failed = false;
        /// -1: there is none; ask again after a while.
        int descriptor = -1;
        bool wants_write = false;
    };

    /// \param servers numeric addresses, as server_list has them
    /// \param user empty, or with ':' and the password behind it
    /// \param access of what is created; empty: everything to the user, or to everybody where there is none
    /// \throws std::bad_alloc
    zk_client(const std::string& servers, std::chrono::milliseconds session_timeout, const std::string& user,
        std::vector<access_right> access);
    ~zk_client();
    zk_client(const zk_client&) = delete;
    zk_client& operator=(const zk_client&) = delete;

    /// Once; nothing else is called after it but what takes. All requests are told. Where a connection stands that was
    /// not shut down, it blocks.
    void close() noexcept;

    /// From now on these, while there is no connection; without memory those from before.
    void use_servers(const std::string& servers);

    [[nodiscard]] phase now() const noexcept;
    /// A request could not be written: the driver has closed its socket, and told nobody.
    [[nodiscard]] bool has_hung_up() const noexcept;
    /// Tells those requests.
    void fail_all();
    [[nodiscard]] interest wants();
    [[nodiscard]] progress process(bool reads, bool writes);
    /// Requests that the driver has, and has not answered.
    [[nodiscard]] std::size_t unanswered() const noexcept { return unanswered_; }
    [[nodiscard]] std::chrono::milliseconds session_timeout() const noexcept;
    [[nodiscard]] std::int64_t session_id() const noexcept;

    void create(const std::string& path, std::string_view data, node_kind lives, std::unique_ptr<request> asked);
    void remove(const std::string& path, std::unique_ptr<request> asked);
    void write(const std::string& path, std::string_view data, std::unique_ptr<request> asked);
    /// `watches`: the next change of the node is told, if there is one.
    void read(const std::string& path, bool watches, std::unique_ptr<request> asked);
    void children(const std::string& path, bool watches, std::unique_ptr<request> asked);
    void exists(const std::string& path, std::unique_ptr<request> asked);
    void sync(const std::string& path, std::unique_ptr<request> asked);
    /// All of it, or nothing. What is created has no stat.
    void multi(const std::vector<change>& changes, std::unique_ptr<request> asked);

    /// While there is no connection: if it would be cut by them, nothing that is watched is watched any more, and
    /// counts as missed.
    void forget_watches();

    [[nodiscard]] bool has_told() const noexcept { return !told_.empty(); }
    /// To be deleted by whoever takes them.
    [[nodiscard]] told_list take_told() noexcept;
    /// A change was told that there was no memory for: anything that is watched may have changed.
    [[nodiscard]] bool take_missed() noexcept;
    [[nodiscard]] std::vector<std::string> take_log() noexcept;

    /// A change of a node: by the driver.
    void on_change(const char* path) noexcept;
    void on_log(const char* text) noexcept;
    void on_answer(request& which) noexcept;

private:
    class guard;
    struct rights;

    void dispose(int refused, std::unique_ptr<request>&& asked);

    std::unique_ptr<rights> rights_;
    _zhandle* driver_ = nullptr;
    told_list told_;
    std::size_t unanswered_ = 0;
    watched_nodes watched_;
    bool missed_ = false;
    std::vector<std::string> log_;
};

} // namespace colock::zookeeper::detail
