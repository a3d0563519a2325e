// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"
#include "zookeeper/driver/session_event_dispatcher.hpp"
#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/recipe/requests.hpp"
#include "zookeeper/session/session_events.hpp"
#include "zookeeper/session/session_life.hpp"
#include "zookeeper/url.hpp"

#include <colock/clock.hpp>
#include <colock/spi/completion.hpp>
#include <colock/spi/context_member.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::zookeeper::detail {

struct session_settings
{
    location where{};
    /// Of what is created; empty: everything to the user, or to everybody where there is none.
    std::vector<access_right> access{};
    /// Asked for; the server decides.
    std::chrono::milliseconds session_timeout{15'000};
    /// Default: 2 s, or half the timeout that leases count on if that is less.
    std::optional<std::chrono::milliseconds> server_tick{};
    /// That any server may grant. Default: what was granted.
    std::optional<std::chrono::milliseconds> smallest_timeout{};
};

/// One session with an ensemble: connects, proves that it lives, goes on at another server when a connection ends, and
/// is over when the server says so. It never comes back: then a new one is made. Knows no locks.
///
/// Thread safety: none; belongs to the strand that it was made with, and keeps itself alive until it has ended or was
/// closed, or its context is gone.
class session final : public std::enable_shared_from_this<session>, public context_member, private requests::outlet
{
public:
    static std::shared_ptr<session> make(
        const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner);
    ~session() override;

    /// Looks up its servers, and goes on from there. Once.
    void start();

    /// Requests can be sent.
    [[nodiscard]] bool connected() const noexcept;
    [[nodiscard]] const session_life& life() const noexcept { return life_; }
    [[nodiscard]] requests& ask() noexcept { return asked_; }
    /// What is asked from now on is sent by `send`, which follows in this turn.
    void begin_asking() noexcept;
    /// What was asked until now is sent now, not at the end of this turn: nothing more is to come.
    void send();

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
        closing,
        over,
    };

    void open(const std::string& servers);
    void look_up_again();
    void turn();
    void retry_in(lease_clock::duration delay);
    void post_step();
    void send_soon();
    void step(bool reads, bool writes);
    /// False: more of it is to come, and the driver must not read it before. What must not be read at all is thrown
    /// away.
    [[nodiscard]] bool takes_greeting();
    /// True if the connection stood before and stands still, and nothing more is there.
    bool process(bool reads, bool writes);
    void look(lease_clock::time_point before);
    void arm();
    void listen(bool writes);
    void fail_requests();
    void collect();
    int tell();
    void send_beat();
    [[nodiscard]] bool take_request() override;
    [[nodiscard]] zk_client* sender() override;
    void tell_later(std::unique_ptr<request> answered) override;

    void go_on_closing(bool reads);
    void end_close(bool proven);
    void release_in_background() noexcept;
    /// After its end: what is still to be told, also to whoever closes it.
    void tell_rest();

    const session_settings settings_;
    const std::weak_ptr<session_events> owner_;
    std::unique_ptr<runtime> runtime_;
    std::unique_ptr<zk_client> zk_client_;
    phase phase_ = phase::fresh;
    session_life life_;
    session_event_dispatcher dispatcher_;
    requests asked_{*this};
};

} // namespace colock::zookeeper::detail
