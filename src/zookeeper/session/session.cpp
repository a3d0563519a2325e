// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session.hpp"

#include "remote/policy/backoff.hpp"
#include "util/jitter.hpp"
#include "zookeeper/driver/closing.hpp"
#include "zookeeper/driver/driver_socket.hpp"
#include "zookeeper/driver/greeting.hpp"
#include "zookeeper/recipe/lookup.hpp"
#include "zookeeper/session/servers.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

namespace {

/// Answers that are read in one go, before others have their turn.
constexpr int most_reads = 64;
/// Answers that leave time for what they lead to.
constexpr int few_told = 16;
/// An ensemble that chooses a leader serves nobody until it has one.
constexpr lease_clock::duration longest_rest = std::chrono::milliseconds(400);

} // namespace

/// What has to go before the context does.
struct session::runtime
{
    explicit runtime(const asio::any_io_executor& executor)
        : strand(executor), names(executor), line(executor), turns(executor), retry(executor), closer(executor)
    {
    }

    asio::any_io_executor strand;
    lookup names;
    driver_socket line;
    asio::steady_timer turns;
    asio::steady_timer retry;
    remote::backoff delays{};

    /// A step is posted already; one is under way.
    bool posted = false;
    bool stepping = false;
    /// What is asked for goes out in a handler that is posted, unless it does before.
    bool sends_soon = false;
    /// Whoever asks says when all is asked.
    bool is_asked = false;
    /// Between two rounds through the list of servers.
    bool resting = false;

    asio::steady_timer closer;
    closing farewell{};
    /// Told when all else was.
    completion<bool> closed{};
    bool proven = false;
};

std::shared_ptr<session> session::make(
    const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
{
    auto made = std::make_shared<session>(strand, std::move(settings), std::move(owner));
    join_context(strand, made);
    return made;
}

session::session(const asio::any_io_executor& strand, session_settings settings, std::weak_ptr<session_events> owner)
    : settings_(std::move(settings)), owner_(std::move(owner)), runtime_(std::make_unique<runtime>(strand)),
      life_(settings_.session_timeout, settings_.server_tick, settings_.smallest_timeout)
{
}

session::~session() = default;

bool session::connected() const noexcept
{
    return phase_ == phase::driving && life_.connected();
}

void session::start()
{
    phase_ = phase::resolving;
    runtime_->names.find(settings_.where.servers, [self = shared_from_this()](lookup::result found) {
        if (self->phase_ != phase::resolving || !self->runtime_)
            return;
        if (!found.servers.empty()) {
            self->open(server_list(found.servers));
            return;
        }
        self->dispatcher_.set_trouble(std::move(found.trouble));
        self->dispatcher_.add(session_event_dispatcher::news::unreachable);
        self->retry_in(self->runtime_->delays.next());
        self->tell();
    });
}

void session::open(const std::string& servers)
{
    const auto& where = settings_.where;
    zk_client_ = std::make_unique<zk_client>(servers, settings_.session_timeout,
        where.user.empty() ? std::string() : where.user + ':' + where.password, settings_.access);
    phase_ = phase::driving;
    turn();
    step(false, false);
}

/// None of its servers can be reached: their names may lead elsewhere by now, or some that led nowhere may lead there.
void session::look_up_again()
{
    runtime_->names.find_others(settings_.where.servers, [self = shared_from_this()](const lookup::result& found) {
        if (self->phase_ == phase::driving && !self->life_.connected())
            self->zk_client_->use_servers(server_list(found.servers));
    });
}

void session::turn()
{
    runtime_->turns.expires_after(life_.heart().pace());
    runtime_->turns.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
        if (failed || self->phase_ != phase::driving)
            return;
        self->turn();
        switch (self->life_.heart().turn(lease_clock::now())) {
        case heartbeat::action::none:
            // The driver has deadlines of its own, which it looks at when it is asked what it wants.
            self->step(false, false);
            return;
        case heartbeat::action::beat:
            self->send_beat();
            self->step(false, false);
            return;
        case heartbeat::action::cut:
            self->dispatcher_.cut_silent();
            self->runtime_->line.socket().cut();
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
            return self->start();
        self->look_up_again();
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
    bool has_only_read = false;
    if (phase_ == phase::driving) {
        runtime_->stepping = true;
        if (reads || writes)
            has_only_read = process(reads, writes) && !writes;
        collect();
    }
    const auto told = tell();
    if (!runtime_ || phase_ != phase::driving)
        return;
    runtime_->stepping = false;
    // Last: whoever was told something has asked for more. Many have asked for more than this turn has time for.
    if (told > few_told)
        send_soon();
    else if (has_only_read && asked_.empty())
        listen(false); // The driver said what it wants when it was given what it has answered now.
    else
        send();
}

void session::begin_asking() noexcept
{
    if (runtime_)
        runtime_->is_asked = true;
}

void session::send()
{
    if (runtime_)
        runtime_->is_asked = false;
    if (!runtime_ || phase_ != phase::driving || runtime_->stepping)
        return;
    runtime_->sends_soon = false;
    const bool has_more = asked_.flush();
    runtime_->line.release_in_background();
    // Or what the driver refuses at once.
    if (has_more || zk_client_->has_told())
        post_step();
    arm();
}

void session::send_soon()
{
    if (std::exchange(runtime_->sends_soon, true))
        return;
    asio::post(runtime_->strand, [self = shared_from_this()] {
        if (self->runtime_ && self->runtime_->sends_soon)
            self->send();
    });
}

bool session::takes_greeting()
{
    auto& socket = runtime_->line.socket();
    std::array<std::byte, longest_greeting> room{};
    const auto came = socket.peek(room);
    // In the child of a fork, packets of the parent's connection may wake us.
    if (!came)
        return false;
    const auto what = judge_greeting(*came, life_.id() != 0);
    const auto wanted = what == greeting::part ? size_of_greeting(*came) : 1;
    const bool has_more = wanted > socket.wakes_at();
    socket.wake_at(wanted);
    if (what == greeting::part && has_more)
        return false;
    // The rest of a part does not come any more.
    if (what != greeting::sound)
        refuse_greeting(socket);
    if (what == greeting::strange)
        dispatcher_.met_a_stranger();
    return true;
}

bool session::process(bool reads, bool writes)
{
    const bool stood = life_.connected();
    auto& socket = runtime_->line.socket();
    if (reads && life_.seen() == zk_client::phase::greeting && !takes_greeting()) {
        if (!writes)
            return false;
        reads = false;
    }
    for (int i = 0; i < most_reads; ++i) {
        const auto before = lease_clock::now();
        const auto made = zk_client_->process(reads, writes);
        look(before);
        if (made == zk_client::progress::failed) {
            socket.drop();
            return false;
        }
        writes = false;
        // What comes unasked, now or later, is heard of in its own turn.
        if (made == zk_client::progress::nothing || !reads || zk_client_->unanswered() == 0)
            return stood && life_.connected();
    }
    post_step();
    return false;
}

void session::look(lease_clock::time_point before)
{
    const auto seen = life_.saw(zk_client_->now(), before);
    if (seen == session_life::change::suspended) {
        zk_client_->forget_watches();
        dispatcher_.add(session_event_dispatcher::news::suspended);
    }
    if (seen != session_life::change::connected)
        return;
    runtime_->delays.reset();
    dispatcher_.met_a_server();
    if (!life_.greeted(zk_client_->session_id(), zk_client_->session_timeout()))
        dispatcher_.add(session_event_dispatcher::news::outlived);
    dispatcher_.add(session_event_dispatcher::news::connected);
    // Proof that it lives, and that it may write, should not wait for the next turn.
    if (life_.heart().turn(lease_clock::now()) == heartbeat::action::beat)
        send_beat();
}

void session::arm()
{
    auto& run = *runtime_;
    if (run.resting)
        return;
    if (zk_client_->has_hung_up() && life_.connected()) {
        fail_requests();
        return;
    }
    const bool stood = life_.connected();
    const auto before = lease_clock::now();
    const auto wanted = zk_client_->wants();
    look(before);
    if (life_.seen() == zk_client::phase::expired || life_.seen() == zk_client::phase::denied) {
        dispatcher_.add(life_.seen() == zk_client::phase::expired ? session_event_dispatcher::news::expired
                                                                  : session_event_dispatcher::news::denied);
        release_in_background();
        post_step();
        return;
    }
    if (wanted.failed || wanted.descriptor == -1) {
        run.line.socket().drop();
        life_.heart().lost();
        if (!wanted.failed) {
            dispatcher_.add(session_event_dispatcher::news::unreachable);
            run.resting = true;
            // All clients of an ensemble that returns should not be there at once, and none long after it.
            retry_in(std::min(run.delays.next(), colock::detail::spread(longest_rest, 0.5)));
        }
        post_step();
        return;
    }
    if (run.line.follow(wanted.descriptor, stood && life_.connected())) {
        life_.heart().opening();
        run.line.socket().wake_at(shortest_greeting);
    }
    if (run.line.socket().open())
        listen(wanted.wants_write);
}

void session::listen(bool writes)
{
    // Not before the connection stands: the driver, told that one which fails can be read, would lose what it reads
    // into.
    const bool is_there = life_.seen() != zk_client::phase::connecting;
    runtime_->line.listen(is_there, writes, [self = shared_from_this()](bool reads) {
        // It may have begun to close since.
        if (self->phase_ == phase::closing)
            self->go_on_closing(reads);
        else
            self->step(reads, !reads);
    });
}

void session::fail_requests()
{
    runtime_->line.socket().drop();
    zk_client_->fail_all();
    look(lease_clock::now());
    collect();
    post_step();
}

void session::collect()
{
    auto fresh = zk_client_->take_told();
    if (!life_.answered(fresh, lease_clock::now()))
        dispatcher_.add(session_event_dispatcher::news::outlived);
    dispatcher_.add(fresh);
}

int session::tell()
{
    const auto owner = owner_.lock();
    if (zk_client_ && owner)
        dispatcher_.tell_notes(*zk_client_, *owner);
    if (owner)
        dispatcher_.tell_news(*owner);
    const auto told = dispatcher_.tell_some(owner.get());
    if (!runtime_)
        return told;
    if (!dispatcher_.empty())
        post_step();
    else if (phase_ == phase::over && runtime_->closed)
        std::exchange(runtime_->closed, {})(runtime_->proven);
    return told;
}

/// Shows that it may write where we are, too.
void session::send_beat()
{
    const auto clock = settings_.where.chroot + "/.clock";
    asked_.write(clock, {}, [self = shared_from_this(), clock](const reply& answer) {
        self->life_.heart().beat_ended(lease_clock::now());
        if (answer.what == status::no_node)
            make_nodes(self->asked_, clock);
        if (answer.what != status::access_denied)
            return;
        self->dispatcher_.add(session_event_dispatcher::news::denied);
        self->post_step();
    });
}

bool session::take_request()
{
    if (!connected() || zk_client_->has_hung_up())
        return false;
    if (!runtime_->stepping && !runtime_->is_asked)
        send_soon();
    return true;
}

zk_client* session::sender()
{
    if (!connected() || zk_client_->has_hung_up())
        return nullptr;
    runtime_->line.hold_back();
    return zk_client_.get();
}

void session::tell_later(std::unique_ptr<request> answered)
{
    dispatcher_.add(std::move(answered));
    if (runtime_)
        post_step();
}

// The end.

void session::close(lease_clock::duration deadline, completion<bool> done)
{
    if (!runtime_ || phase_ == phase::over || phase_ == phase::closing) {
        done(phase_ == phase::over);
        return;
    }
    const bool can_ask = connected() && !zk_client_->has_hung_up();
    while (asked_.flush()) {
    }
    runtime_->closed = std::move(done);
    // Without a session there is nothing to be closed.
    const bool has_none = life_.id() == 0;
    phase_ = phase::closing;
    if (!can_ask) {
        asio::post(runtime_->strand, [self = shared_from_this(), has_none] {
            if (self->runtime_)
                self->end_close(has_none);
        });
        return;
    }
    runtime_->closer.expires_after(deadline);
    runtime_->closer.async_wait([self = shared_from_this()](const boost::system::error_code& failed) {
        if (!failed && self->runtime_)
            self->end_close(false);
    });
    runtime_->turns.cancel();
    asio::post(runtime_->strand, [self = shared_from_this()] { self->go_on_closing(false); });
}

void session::go_on_closing(bool reads)
{
    if (!runtime_ || phase_ != phase::closing || !zk_client_)
        return;
    auto& run = *runtime_;
    run.line.release_in_background();
    auto& socket = run.line.socket();
    const auto made = reads ? run.farewell.read_rest(socket) : run.farewell.flush(*zk_client_, socket);
    if (made == closing::progress::proven || made == closing::progress::failed)
        end_close(made == closing::progress::proven);
    else
        listen(made == closing::progress::writes);
}

void session::end_close(bool proven)
{
    const auto self = shared_from_this();
    runtime_->proven = proven;
    release_in_background();
    tell();
}

void session::abandon()
{
    if (!runtime_ || phase_ == phase::over)
        return;
    const auto self = shared_from_this();
    release_in_background();
    tell_rest();
}

void session::tell_rest()
{
    if (!dispatcher_.empty() || runtime_->closed)
        post_step();
}

void session::release_in_background() noexcept
{
    phase_ = phase::over;
    auto unsent = asked_.take_unsent();
    dispatcher_.add(unsent);
    life_.end();
    if (runtime_) {
        runtime_->turns.cancel();
        runtime_->retry.cancel();
        runtime_->closer.cancel();
        runtime_->names.cancel();
        // On a connection that stands the driver would wait for an answer.
        runtime_->line.socket().cut();
        runtime_->line.socket().drop();
    }
    if (zk_client_) {
        zk_client_->close();
        auto rest = zk_client_->take_told();
        dispatcher_.add(rest);
        zk_client_.reset();
    }
}

void session::context_shutdown() noexcept
{
    const auto self = shared_from_this();
    release_in_background();
    dispatcher_.drop();
    runtime_.reset();
}

void session::context_forked() noexcept
{
    if (!runtime_ || phase_ == phase::over)
        return;
    // The parent's: nothing more may be sent on it, nor may it be shut down.
    runtime_->line.socket().disown();
    release_in_background();
    tell_rest();
}

} // namespace colock::zookeeper::detail
