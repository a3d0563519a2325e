// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session.hpp"

#include "remote/resolve.hpp"
#include "zookeeper/servers.hpp"
#include "zookeeper/session_runtime.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Answers that are read in one go, before others have their turn.
constexpr int most_reads = 64;
/// Requests and changes that are told in one go.
constexpr int most_told = 256;

heartbeat::duration tick_of(const session_settings& settings, heartbeat::duration session_timeout)
{
    return settings.server_tick ? heartbeat::duration(*settings.server_tick)
                                : std::min<heartbeat::duration>(2s, session_timeout / 2);
}

heartbeat::terms terms_of(const session_settings& settings, heartbeat::duration session_timeout)
{
    return {.session_timeout = session_timeout, .server_tick = tick_of(settings, session_timeout)};
}

} // namespace

std::shared_ptr<session> session::make(
    const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
{
    auto made = std::make_shared<session>(strand, std::move(settings), std::move(owner));
    join_context(strand, made);
    return made;
}

session::session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
    : settings_(std::move(settings)), clock_(settings_.where.chroot + "/.clock"), owner_(std::move(owner)),
      runtime_(std::make_unique<runtime>(strand)), heart_(terms_of(settings_, settings_.session_timeout)),
      timeout_(settings_.session_timeout)
{
}

session::~session()
{
    drop_told();
}

bool session::connected() const noexcept
{
    return phase_ == phase::driving && seen_ == handle::phase::connected;
}

void session::start()
{
    phase_ = phase::resolving;
    resolve();
}

void session::resolve()
{
    auto& run = *runtime_;
    run.servers.clear();
    run.unresolved = settings_.where.servers.size();
    for (const auto& [host, port] : settings_.where.servers) {
        // Only a name needs the resolver, which starts a thread.
        if (const auto known = remote::numeric_endpoint(host, port)) {
            run.servers.push_back(*known);
            --run.unresolved;
            continue;
        }
        run.names.async_resolve(host, port,
            [self = shared_from_this()](const boost::system::error_code& failed, const remote::addresses& found) {
                if (!self->runtime_)
                    return;
                auto& known = self->runtime_->servers;
                if (failed)
                    self->trouble_ = failed.message();
                else
                    std::ranges::transform(
                        found, std::back_inserter(known), [](const auto& each) { return each.endpoint(); });
                if (--self->runtime_->unresolved == 0)
                    self->resolved();
            });
    }
    if (run.unresolved == 0)
        asio::post(run.strand, [self = shared_from_this()] { self->resolved(); });
}

void session::resolved()
{
    if (phase_ != phase::resolving || !runtime_)
        return;
    if (!runtime_->servers.empty()) {
        open();
        return;
    }
    unreachable(trouble_);
    retry_in(delays_.next());
    tell();
}

void session::open()
{
    auto& run = *runtime_;
    // Not all clients of an ensemble should begin with the same server.
    std::ranges::shuffle(run.servers, std::random_device());
    const auto& where = settings_.where;
    handle_ = std::make_unique<handle>(server_list(run.servers), settings_.session_timeout,
        where.user.empty() ? std::string() : where.user + ':' + where.password);
    phase_ = phase::driving;
    turn();
    step(false, false);
}

void session::turn()
{
    runtime_->turns.expires_after(heart_.pace());
    runtime_->turns.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
        if (failed || self->phase_ != phase::driving)
            return;
        self->turn();
        switch (self->heart_.turn(lease_clock::now())) {
        case heartbeat::action::none:
            // The driver has deadlines of its own, which it looks at when it is asked what it wants.
            self->step(false, false);
            return;
        case heartbeat::action::beat:
            self->send_beat();
            self->step(false, false);
            return;
        case heartbeat::action::cut:
            self->runtime_->socket.cut();
            self->step(true, true);
            return;
        }
    });
}

void session::retry_in(lease_clock::duration delay)
{
    runtime_->retry.expires_after(delay);
    runtime_->retry.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
        if (failed || !self->runtime_)
            return;
        self->runtime_->resting = false;
        if (self->phase_ == phase::resolving)
            self->resolve();
        else
            self->step(false, false);
    });
}

void session::post_step()
{
    auto& run = *runtime_;
    if (std::exchange(run.posted, true))
        return;
    asio::post(run.strand, [self = shared_from_this()] {
        if (!self->runtime_)
            return;
        self->runtime_->posted = false;
        self->step(false, false);
    });
}

void session::step(bool reads, bool writes)
{
    const auto self = shared_from_this();
    if (phase_ == phase::driving) {
        runtime_->stepping = true;
        if (reads || writes)
            process(reads, writes);
        collect();
    }
    tell();
    if (!runtime_ || phase_ != phase::driving)
        return;
    runtime_->stepping = false;
    // Last: whoever was told something has asked for more.
    arm();
    if (std::exchange(runtime_->corked, false))
        runtime_->socket.cork(false);
}

void session::process(bool reads, bool writes)
{
    if (reads && is_greeted_by_a_stranger())
        refuse_greeting();
    for (int i = 0; i < most_reads; ++i) {
        const auto before = lease_clock::now();
        const auto made = handle_->process(reads, writes);
        look(before);
        if (made == handle::progress::failed) {
            runtime_->socket.drop();
            return;
        }
        writes = false;
        if (made == handle::progress::nothing || !reads)
            return;
    }
    post_step();
}

/// The driver believes whatever it is answered, and ends the process where that makes no sense.
bool session::is_greeted_by_a_stranger()
{
    if (seen_ != handle::phase::greeting)
        return false;
    // Length, version, timeout, session, and the length of a password.
    std::array<std::byte, 24> room{};
    const auto greeting = runtime_->socket.peek(room);
    constexpr std::array<std::byte, 4> none{};
    const auto is_small = [&](std::size_t at, int most) {
        return std::equal(none.begin(), none.end() - 1, greeting.begin() + static_cast<std::ptrdiff_t>(at)) &&
               std::to_integer<int>(greeting[at + 3]) <= most;
    };
    return greeting.size() == room.size() && !(is_small(0, 37) && is_small(4, 0) && is_small(20, 16));
}

void session::refuse_greeting()
{
    runtime_->socket.cut();
    // What has arrived would still be read, and believed.
    std::array<std::byte, 4096> unread;
    for (int i = 0; i < most_reads; ++i) {
        if (const auto got = runtime_->socket.take(unread); !got || got->empty())
            break;
    }
    is_stranger_ = true;
    trouble_ = "what listens there is no ZooKeeper server";
}

void session::look(lease_clock::time_point before)
{
    const auto was = std::exchange(seen_, handle_->now());
    if (was == seen_)
        return;
    if (seen_ == handle::phase::greeting)
        greeted_ = before;
    if (was == handle::phase::connected) {
        heart_.lost();
        if (bound_)
            bound_->at_risk();
        announced_.push_back(news::suspended);
    }
    if (seen_ == handle::phase::connected)
        opened();
}

void session::opened()
{
    delays_.reset();
    is_stranger_ = false;
    timeout_ = handle_->session_timeout();
    id_ = handle_->session_id();
    heart_.opened(greeted_, terms_of(settings_, timeout_));
    raise_bound();
    announced_.push_back(news::connected);
    // Proof that it lives, and that it may write, should not wait for the next turn.
    if (heart_.turn(lease_clock::now()) == heartbeat::action::beat)
        send_beat();
}

void session::raise_bound()
{
    const auto until = heart_.valid_until();
    if (!bound_) {
        bound_ = std::make_shared<session_bound>(until);
    } else if (!bound_->raise(until)) {
        bound_ = std::make_shared<session_bound>(until);
        announced_.push_back(news::outlived);
    }
}

void session::fail_requests()
{
    runtime_->socket.drop();
    handle_->fail_all();
    look(lease_clock::now());
    collect();
    post_step();
}

void session::arm()
{
    auto& run = *runtime_;
    if (run.resting)
        return;
    if (handle_->has_hung_up() && seen_ == handle::phase::connected) {
        fail_requests();
        return;
    }
    const auto before = lease_clock::now();
    const auto wanted = handle_->wants();
    look(before);
    if (seen_ == handle::phase::expired || seen_ == handle::phase::denied) {
        end(seen_ == handle::phase::expired ? news::expired : news::denied);
        return;
    }
    if (wanted.failed) {
        run.socket.drop();
        heart_.lost();
        post_step();
        return;
    }
    if (wanted.descriptor == -1) {
        run.socket.drop();
        heart_.lost();
        collect();
        unreachable(trouble_);
        run.resting = true;
        // All clients of an ensemble that returns should not be there at once.
        retry_in(std::max<lease_clock::duration>(wanted.delay, delays_.next()));
        post_step();
        return;
    }
    if (run.socket.follow(wanted.descriptor)) {
        run.reading = run.writing = false;
        heart_.opening();
    }
    if (run.socket.open())
        listen(wanted.wants_write);
}

void session::listen(bool writes)
{
    auto& run = *runtime_;
    using descriptor = asio::posix::descriptor_base;
    const auto begin = [&](bool& armed, descriptor::wait_type what, bool is_read) {
        if (std::exchange(armed, true))
            return;
        run.socket.wait(what, [self = shared_from_this(), &armed, is_read, number = run.socket.number()](
                                  const boost::system::error_code& failed) {
            if (failed || !self->runtime_ || number != self->runtime_->socket.number())
                return;
            armed = false;
            if (self->phase_ == phase::closing)
                is_read ? self->read_rest() : self->flush();
            else
                self->step(is_read, !is_read);
        });
    };
    begin(run.reading, descriptor::wait_read, true);
    if (writes)
        begin(run.writing, descriptor::wait_write, false);
}

void session::unreachable(std::string why)
{
    trouble_ = std::move(why);
    announced_.push_back(news::unreachable);
}

void session::collect()
{
    auto fresh = handle_->take_told();
    const auto now = lease_clock::now();
    bool proves = false;
    for (const auto& each : fresh) {
        if (each.what != told::kind::answer)
            continue;
        const auto& asked = static_cast<const request&>(each);
        const auto what = asked.answer.what;
        // What a follower without its leader, or a leader without its followers, could not have answered.
        if (!asked.writes || what > status::bad_version)
            continue;
        heart_.answered(asked.sent, now);
        proves = true;
    }
    if (proves && seen_ == handle::phase::connected)
        raise_bound();
    told_.splice(told_.end(), fresh);
}

void session::tell()
{
    const auto owner = owner_.lock();
    if (handle_ && owner) {
        for (const auto& line : handle_->take_log()) {
            if (line.find("ZOO_ERROR") != std::string::npos && !is_stranger_)
                trouble_ = line;
            owner->on_log(line);
        }
        if (handle_->take_missed())
            owner->on_changed({});
    }
    if (owner)
        tell_news(*owner);
    for (int i = 0; i < most_told && !told_.empty(); ++i) {
        const std::unique_ptr<told> each(&told_.front());
        told_.pop_front();
        tell_one(*each, owner.get());
    }
    if (!runtime_)
        return;
    if (!told_.empty())
        post_step();
    else if (phase_ == phase::over && runtime_->closed)
        std::exchange(runtime_->closed, {})(runtime_->proven);
}

void session::tell_one(told& each, session_events* events)
{
    if (each.what == told::kind::change) {
        if (events)
            events->on_changed(static_cast<told_change&>(each).path);
        return;
    }
    auto& asked = static_cast<request&>(each);
    if (asked.done)
        asked.done(std::move(asked.answer));
}

void session::tell_news(session_events& events)
{
    for (const auto each : std::exchange(announced_, {})) {
        switch (each) {
        case news::connected:
            events.on_connected();
            break;
        case news::suspended:
            events.on_suspended();
            break;
        case news::unreachable:
            events.on_unreachable(trouble_);
            break;
        case news::outlived:
            events.on_outlived();
            break;
        case news::expired:
            events.on_expired();
            break;
        case news::denied:
            events.on_denied();
            break;
        }
    }
}

} // namespace colock::zookeeper::detail
