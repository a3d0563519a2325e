// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/backoff.hpp"
#include "zookeeper/handle.hpp"
#include "zookeeper/heartbeat.hpp"
#include "zookeeper/reply.hpp"
#include "zookeeper/url.hpp"

#include <colock/clock.hpp>
#include <colock/completion.hpp>
#include <colock/context_member.hpp>
#include <colock/lease.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// What a session tells its owner, on its strand.
class session_events
{
public:
    /// A server has taken it on: the first, or another after a suspension.
    virtual void on_connected() noexcept = 0;
    virtual void on_suspended() noexcept = 0;
    /// Every server was tried in vain.
    virtual void on_unreachable(std::string_view why) noexcept = 0;
    /// It was away for so long that all that it held counts as lost, and yet the server still knows it: what is granted
    /// from now on is tied to another bound.
    virtual void on_outlived() noexcept = 0;
    /// The server says that it is over.
    virtual void on_expired() noexcept = 0;
    /// The server says that the user is not the one he says he is, or may not write where we are; the session goes on
    /// in the second case.
    virtual void on_denied() noexcept = 0;
    /// A node that was watched; empty: any.
    virtual void on_changed(std::string_view path) noexcept = 0;
    virtual void on_log(std::string_view text) noexcept = 0;

protected:
    ~session_events() = default;
};

struct session_settings
{
    location where{};
    /// Asked for; the server decides.
    std::chrono::milliseconds session_timeout{15'000};
    /// Default: 2 s, or half the timeout if that is less.
    std::optional<std::chrono::milliseconds> server_tick{};
};

/// One session with an ensemble: connects, proves that it lives, goes on at another server when a connection ends, and
/// is over when the server says so. It never comes back: then a new one is made. Knows no locks.
///
/// A request is sent while it is connected, or not at all. Its completion is called later, on the strand; if it was cut
/// off meanwhile, with `unanswered`.
///
/// Thread safety: none; belongs to the strand that it was made with, and keeps itself alive until it has ended or was
/// closed, or its context is gone.
class session final : public std::enable_shared_from_this<session>, public context_member
{
public:
    static std::shared_ptr<session> make(
        const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    ~session() override;

    /// Once.
    void start();

    [[nodiscard]] bool connected() const noexcept;
    [[nodiscard]] std::int64_t id() const noexcept { return id_; }
    /// What the server has granted.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }
    /// What a grant of now is tied to; null before it was connected.
    [[nodiscard]] const std::shared_ptr<session_bound>& bound() const noexcept { return bound_; }

    void create(const std::string& path, std::string_view data, node_kind lives, replied done);
    void remove(const std::string& path, replied done);
    void write(const std::string& path, std::string_view data, replied done);
    void read(const std::string& path, replied done);
    /// The next change is told; a node that is not there is not watched.
    void read_and_watch(const std::string& path, replied done);
    void children(const std::string& path, replied done);
    void children_and_watch(const std::string& path, replied done);
    void exists(const std::string& path, replied done);
    /// What is read after it is no older than this.
    void sync(const std::string& path, replied done);
    void multi(const std::vector<change>& changes, replied done);

    /// Ends it at the server. True: the server says so, nothing of it is left and nothing of it can still arrive.
    void close(lease_clock::duration deadline, completion<bool> done);
    /// Lets go of it. What it holds stays until the server counts it out.
    void abandon();

    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

private:
    struct runtime;
    enum class phase : unsigned char
    {
        fresh,
        /// Looks up its servers, and waits to do so again.
        resolving,
        driving,
        /// What is queued is sent; then the request that ends it; then its answer is read.
        closing,
        over,
    };

    enum class news : unsigned char
    {
        connected,
        suspended,
        unreachable,
        outlived,
        expired,
        denied,
    };

    void resolve();
    void resolved();
    void open();
    void turn();
    void retry_in(lease_clock::duration delay);
    void post_step();
    void step(bool reads, bool writes);
    void process(bool reads, bool writes);
    [[nodiscard]] bool is_greeted_by_a_stranger();
    void refuse_greeting();
    void arm();
    void listen(bool writes);
    void hold_back();
    void look(lease_clock::time_point before);
    void opened();
    void fail_requests();
    void unreachable(std::string why);

    void collect();
    void tell();
    void tell_news(session_events& events);
    void tell_one(told& each, session_events* events);
    void raise_bound();

    [[nodiscard]] std::unique_ptr<request> begin(replied done, bool writes);
    void refuse(replied done, status why);
    template <class Send>
    void submit(bool writes, replied done, Send send);
    void send_beat();
    void beat_answered(const reply& answer);
    void make_nodes();

    void flush();
    void read_rest();
    void end_close(bool proven);
    void let_go() noexcept;
    void end(news why);
    void drop_told() noexcept;

    const session_settings settings_;
    const std::string clock_;
    const std::weak_ptr<session_events> owner_;
    std::unique_ptr<runtime> runtime_;
    std::unique_ptr<handle> handle_;
    phase phase_ = phase::fresh;
    handle::phase seen_ = handle::phase::disconnected;
    heartbeat heart_;
    remote::backoff delays_;
    std::shared_ptr<session_bound> bound_;
    std::int64_t id_ = 0;
    std::chrono::milliseconds timeout_{};
    lease_clock::time_point greeted_{};
    told_list told_;
    std::vector<news> announced_;
    /// The driver's last word on why there is no connection; unless it was ours.
    std::string trouble_;
    bool is_stranger_ = false;
};

} // namespace colock::zookeeper::detail
