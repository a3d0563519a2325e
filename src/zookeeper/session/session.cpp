// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session.hpp"

#include "util/jitter.hpp"
#include "zookeeper/driver/greeting.hpp"
#include "zookeeper/session/servers.hpp"
#include "zookeeper/session/session_runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Maximum number of replies that are read before other handlers can run.
constexpr int max_reads = 64;
/// Number of delivered items up to which new requests are sent by the same handler.
constexpr int max_delivered_before_send = 16;
/// Maximum delay before the servers are tried again, before it is randomized. It is short, because an ensemble serves
/// no client during an election, which may end at any time.
constexpr lease_clock::duration max_retry_delay = std::chrono::milliseconds(400);

} // namespace

std::shared_ptr<session> session::make(
    const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
{
    auto result = std::make_shared<session>(strand, std::move(settings), std::move(owner));
    join_context(strand, result);
    return result;
}

session::session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
    : settings_(std::move(settings)), owner_(std::move(owner)),
      runtime_(std::make_unique<runtime>(strand, settings_.target.servers)),
      life_(settings_.session_timeout, settings_.connect_timeout, settings_.server_tick, settings_.smallest_timeout)
{
}

session::~session() = default;

bool session::connected() const noexcept
{
    return phase_ == phase::running && life_.connected() && !life_.is_unverified();
}

void session::start()
{
    phase_ = phase::resolving;
    look_up_servers();
}

void session::look_up_servers()
{
    runtime_->servers->find(
        [self = shared_from_this()](server_lookup::result found) { self->on_servers(std::move(found)); });
}

void session::on_servers(server_lookup::result found)
{
    if (!runtime_)
        return;
    if (phase_ == phase::resolving && !found.servers.empty()) {
        servers_ = std::move(found.servers);
        open(server_list(servers_));
    } else if (phase_ == phase::resolving) {
        dispatcher_.set_connection_failure(std::move(found.connection_failure));
        dispatcher_.add(session_event_dispatcher::event::unreachable);
        retry_in(runtime_->back_off.next());
        deliver();
    } else if (phase_ == phase::running && !life_.connected() && !std::ranges::is_permutation(servers_, found.servers))
    {
        servers_ = std::move(found.servers);
        zk_client_->use_servers(server_list(servers_));
    }
}

void session::open(const std::string& servers)
{
    const auto& target = settings_.target;
    zk_client_ = std::make_unique<zk_client>(servers, settings_.session_timeout,
        target.user.empty() ? std::string() : target.user + ':' + target.password, settings_.access);
    phase_ = phase::running;
    start_check_timer();
    step(false, false);
}

void session::start_check_timer()
{
    runtime_->check_timer.expires_after(life_.get_heartbeat().check_interval());
    runtime_->check_timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (error || self->phase_ != phase::running)
            return;
        self->start_check_timer();
        switch (self->life_.get_heartbeat().check(lease_clock::now())) {
        case heartbeat::action::none:
            // The driver checks its own deadlines when it is asked what it waits for.
            self->step(false, false);
            return;
        case heartbeat::action::beat:
            self->verify_or_send_beat();
            self->step(false, false);
            return;
        case heartbeat::action::disconnect:
            self->dispatcher_.note_shut_down();
            self->runtime_->socket.waiter().shut_down();
            self->step(true, true);
            return;
        }
    });
}

void session::retry_in(lease_clock::duration delay)
{
    runtime_->retry_timer.expires_after(delay);
    runtime_->retry_timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (error || !self->runtime_)
            return;
        self->runtime_->is_waiting_to_retry = false;
        if (self->phase_ == phase::resolving)
            return self->start();
        // No server can be reached: a name may have other addresses now.
        if (self->runtime_->servers->has_names())
            self->look_up_servers();
        self->step(false, false);
    });
}

void session::post_step()
{
    auto& run = *runtime_;
    if (std::exchange(run.is_step_posted, true))
        return;
    asio::post(run.strand, [self = shared_from_this()] {
        if (!self->runtime_)
            return;
        self->runtime_->is_step_posted = false;
        self->step(false, false);
    });
}

void session::step(bool reads, bool writes)
{
    const auto self = shared_from_this();
    bool has_only_read = false;
    if (phase_ == phase::running) {
        runtime_->is_stepping = true;
        if (reads || writes)
            has_only_read = process(reads, writes) && !writes;
        collect_reports();
    }
    const auto delivered = deliver();
    if (!runtime_ || phase_ != phase::running)
        return;
    runtime_->is_stepping = false;
    // Requests are sent last, because the completions have made new ones. After many completions another handler sends
    // them, so that this one does not take too long.
    if (delivered > max_delivered_before_send)
        post_send();
    else if (has_only_read && requests_.empty() && life_.connected())
        wait_for_readiness(false); // The driver waits for the same events as when the requests were sent.
    else
        send();
}

void session::announce_requests() noexcept
{
    if (runtime_)
        runtime_->is_send_announced = true;
}

void session::send()
{
    if (runtime_)
        runtime_->is_send_announced = false;
    if (!runtime_ || phase_ != phase::running || runtime_->is_stepping)
        return;
    runtime_->is_send_posted = false;
    const bool has_more = requests_.flush();
    runtime_->socket.uncork();
    // The driver may have refused a request at once.
    if (has_more || zk_client_->has_reports())
        post_step();
    wait_for_socket();
}

void session::post_send()
{
    if (std::exchange(runtime_->is_send_posted, true))
        return;
    asio::post(runtime_->strand, [self = shared_from_this()] {
        if (self->runtime_ && self->runtime_->is_send_posted)
            self->send();
    });
}

bool session::may_read_greeting()
{
    auto& socket = runtime_->socket.waiter();
    std::array<std::byte, max_greeting_size> buffer{};
    const auto received = socket.peek(buffer);
    if (!received)
        return false;
    const auto greeting_state = check_greeting(*received, life_.id() != 0);
    const auto needed_size = greeting_state == greeting::incomplete ? greeting_size(*received) : 1;
    const bool has_more = needed_size > socket.low_watermark();
    socket.set_low_watermark(needed_size);
    if (greeting_state == greeting::incomplete && has_more)
        return false;
    // An incomplete greeting is refused here, because its rest does not arrive any more.
    if (greeting_state != greeting::valid)
        reject_greeting(socket);
    if (greeting_state == greeting::invalid)
        dispatcher_.note_foreign_server();
    return true;
}

bool session::process(bool reads, bool writes)
{
    const bool was_connected = life_.connected();
    auto& socket = runtime_->socket.waiter();
    if (reads && life_.phase() == zk_client::phase::greeting && !may_read_greeting()) {
        if (!writes)
            return false;
        reads = false;
    }
    for (int i = 0; i < max_reads; ++i) {
        const auto before = lease_clock::now();
        const auto progress = zk_client_->process(reads, writes);
        note_phase(before);
        if (progress == zk_client::progress::failed) {
            socket.drop();
            return false;
        }
        writes = false;
        // Data that arrives without a request is read by a later handler.
        if (progress == zk_client::progress::nothing || !reads || zk_client_->unanswered() == 0)
            return was_connected && life_.connected();
    }
    post_step();
    return false;
}

void session::note_phase(lease_clock::time_point before)
{
    const auto change = life_.note_phase(zk_client_->current_phase(), before);
    if (change == session_life::change::suspended) {
        requests_.refuse_unsent();
        zk_client_->drop_excessive_watches();
        // A connection on which the session was not verified has not been reported.
        if (!life_.is_unverified())
            dispatcher_.add(session_event_dispatcher::event::suspended);
    }
    if (change != session_life::change::connected)
        return;
    ++connection_;
    ++verification_;
    is_throttled_ = false;
    runtime_->back_off.reset();
    dispatcher_.note_valid_server();
    is_resumed_ = life_.id() != 0;
    life_.note_greeting(zk_client_->session_id(), zk_client_->session_timeout());
    // The proof that the session lives, and that it may write, should not wait for the next check.
    if (life_.get_heartbeat().check(lease_clock::now()) == heartbeat::action::beat)
        verify_or_send_beat();
}

void session::wait_for_socket()
{
    auto& run = *runtime_;
    if (run.is_waiting_to_retry)
        return;
    if (zk_client_->has_closed_socket() && life_.connected()) {
        fail_requests();
        return;
    }
    const bool was_connected = life_.connected();
    const auto before = lease_clock::now();
    const auto interest = zk_client_->current_interest();
    note_phase(before);
    if (life_.phase() == zk_client::phase::expired || life_.phase() == zk_client::phase::denied) {
        dispatcher_.add(life_.phase() == zk_client::phase::expired ? session_event_dispatcher::event::expired
                                                                   : session_event_dispatcher::event::denied);
        shut_down();
        post_step();
        return;
    }
    if (interest.failed || interest.descriptor == -1) {
        run.socket.waiter().drop();
        life_.get_heartbeat().on_disconnected();
        if (!interest.failed) {
            dispatcher_.add(session_event_dispatcher::event::unreachable);
            run.is_waiting_to_retry = true;
            // The limit is randomized as well, so that the clients of an ensemble that comes back do not all connect at
            // the same time.
            retry_in(std::min(run.back_off.next(), colock::detail::spread(max_retry_delay, 0.5)));
        }
        post_step();
        return;
    }
    if (run.socket.follow(interest.descriptor, was_connected && life_.connected())) {
        life_.get_heartbeat().on_connecting();
        start_check_timer();
        run.socket.waiter().set_low_watermark(min_greeting_size);
    }
    if (run.socket.waiter().is_open())
        wait_for_readiness(interest.wants_write);
}

void session::wait_for_readiness(bool writes)
{
    // The driver must not read before the connection is established. It would leak its read buffer if the attempt has
    // failed.
    const bool may_read = life_.phase() != zk_client::phase::connecting;
    runtime_->socket.start_waits(may_read, writes, [self = shared_from_this()](bool reads) {
        // The session may have begun to close meanwhile.
        if (self->phase_ == phase::closing)
            self->continue_closing(reads);
        else
            self->step(reads, !reads);
    });
}

void session::fail_requests()
{
    runtime_->socket.waiter().drop();
    zk_client_->fail_all();
    note_phase(lease_clock::now());
    collect_reports();
    post_step();
}

void session::collect_reports()
{
    auto reports = zk_client_->take_reports();
    if (!life_.note_reports(reports, lease_clock::now()))
        dispatcher_.add(session_event_dispatcher::event::lease_ended);
    dispatcher_.add(reports);
}

int session::deliver()
{
    const auto owner = owner_.lock();
    if (zk_client_ && owner)
        dispatcher_.report_log(*zk_client_, *owner);
    if (owner)
        dispatcher_.deliver_events(*owner);
    const auto delivered = dispatcher_.deliver_some(owner.get());
    if (!runtime_)
        return delivered;
    if (!dispatcher_.empty())
        post_step();
    else if (phase_ == phase::over && runtime_->on_closed)
        std::exchange(runtime_->on_closed, {})(runtime_->is_proven);
    return delivered;
}

bool session::can_send() const noexcept
{
    return phase_ == phase::running && life_.connected() && !zk_client_->has_closed_socket();
}

bool session::take_request()
{
    if (!can_send())
        return false;
    if (!runtime_->is_stepping && !runtime_->is_send_announced)
        post_send();
    return true;
}

zk_client* session::sender()
{
    if (!can_send())
        return nullptr;
    runtime_->socket.cork();
    return zk_client_.get();
}

void session::complete_later(std::unique_ptr<request> request)
{
    dispatcher_.add(std::move(request));
    if (runtime_)
        post_step();
}

} // namespace colock::inline v0::zookeeper::detail
