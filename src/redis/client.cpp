// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/client.hpp"

#include "core/strand.hpp"
#include "redis/failures.hpp"
#include "redis/link.hpp"
#include "redis/scripts.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/redis/error.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace colock::redis::detail {

namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// The load travels in parts, so that the server works on some while we do on another: of two, one would often be on
/// its way. What waits in our queue was certainly not sent, so more parts than that would help nobody.
constexpr std::size_t most_in_flight = 4;
/// With a processor for the server, smaller batches would cost more system calls than they gain; larger ones would keep
/// the event loop too long.
constexpr std::size_t least_batch = 16;
constexpr std::size_t largest_batch = 128;
constexpr std::size_t most_spare = 4;
constexpr lease_clock::duration anchor_interval = 1s;
/// A channel is kept a little after its last use: the next waiter on the same key is often on its way.
constexpr lease_clock::duration channel_linger = 1s;
/// What "at once" means for a connection: whoever was just answered may have the next request in hand.
constexpr milliseconds at_once = 10ms;
/// A tick that is later than this did not come in time because nobody ran the event loop.
constexpr lease_clock::duration most_late = 250ms;
constexpr std::size_t most_channels_per_request = 256;
constexpr std::size_t most_unproven = 1024;

std::string_view info_field(std::string_view info, std::string_view name)
{
    for (std::size_t at = 0; (at = info.find(name, at)) != std::string_view::npos; at += name.size()) {
        const bool starts_line = at == 0 || info[at - 1] == '\n';
        const auto value = at + name.size();
        if (starts_line && value < info.size() && info[value] == ':')
            return info.substr(value + 1, info.find_first_of("\r\n", value) - value - 1);
    }
    return {};
}

bool too_old(std::string_view info)
{
    const auto version = info_field(info, "redis_version");
    int major = 0;
    int minor = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), major);
    if (error != std::errc() || end == version.data() + version.size() || *end != '.')
        return false;
    std::from_chars(end + 1, version.data() + version.size(), minor);
    return major < 6 || (major == 6 && minor < 2);
}

/// Around 100 ms at first, up to about 2 s: all clients of a server that returns should not do so at once.
milliseconds backoff(unsigned failures)
{
    static thread_local std::minstd_rand random(std::random_device{}());
    const auto base = 100.0 * static_cast<double>(1u << std::min(failures, 4u));
    return milliseconds(static_cast<int>(base * std::uniform_real_distribution<>(0.5, 1.5)(random)));
}

} // namespace

/// Some commands of the client's own.
class client::exchange final : public operation
{
public:
    using writer = std::function<void(boost::redis::request&)>;
    using reader = std::function<void(delivery, const reply_list&)>;

    exchange(writer writes, reader reads) : writes_(std::move(writes)), reads_(std::move(reads)) {}

    void write(boost::redis::request& request) override { writes_(request); }
    void end(operation_ptr, delivery how, failure_ptr) override { reads_(how, replies); }

    /// Sends it on `on`, outside the queue.
    static void start(const std::shared_ptr<link>& on, writer writes, reader reads)
    {
        auto sent = std::make_unique<batch>();
        sent->add(std::make_unique<exchange>(std::move(writes), std::move(reads)));
        auto& request = sent->request();
        auto* const reading = sent.get();
        on->exec(request, adapter_for(*reading, *on),
            [on, sent = std::move(sent)](const error_code&, std::size_t) { sent->finish(nullptr); });
    }

    static boost::redis::any_adapter adapter_for(batch& reading, link& on)
    {
        using event = boost::redis::any_adapter::parse_event;
        return boost::redis::any_adapter(boost::redis::any_adapter::impl_t(
            [&reading, &heard = on.heard()](event what, const boost::redis::resp3::node_view& node, error_code&) {
                ++heard;
                if (what == event::node)
                    reading.on_node(node);
                else if (what == event::done)
                    reading.on_reply();
            }));
    }

private:
    writer writes_;
    reader reads_;
};

struct client::runtime
{
    enum class phase : unsigned char
    {
        /// Nothing to do.
        idle,
        /// Asking Sentinels, connecting, greeting.
        connecting,
        open,
        /// The connection has ended; its requests are being told so.
        ending,
        /// Connects again when the timer fires.
        waiting,
    };
    struct unproven
    {
        std::int64_t client_id;
        std::string run_id;
        bool refused = false;
    };

    explicit runtime(const asio::any_io_executor& executor)
        : strand(colock::detail::new_strand(executor)), ticker(strand), retry(strand), message_retry(strand)
    {
    }

    asio::any_io_executor strand;
    asio::steady_timer ticker;
    asio::steady_timer retry;
    asio::steady_timer message_retry;
    lease_clock::time_point tick_at = lease_clock::time_point::max();
    lease_clock::duration tick_delay{};
    lease_clock::time_point used{};
    bool used_since_tick = false;

    std::unique_ptr<tls_material> tls;
    endpoint server;
    phase now = phase::idle;
    std::shared_ptr<link> commands;
    std::uint64_t numbers = 0;
    std::int64_t client_id = 0;
    std::string run_id;
    std::vector<batch*> in_flight;
    std::size_t operations_in_flight = 0;
    /// Answered, and not told yet.
    std::deque<batch_ptr> answers;
    /// The next of them is told by a handler that is posted already.
    bool telling = false;
    /// No more is sent; the connection is closed once nothing is in flight.
    bool draining = false;
    /// After a fork: the connection is the parent's, and must not be killed for what is unanswered on it.
    bool disowned = false;
    bool was_ready = false;
    bool announced_loss = false;
    bool reconnects_at_once = false;
    unsigned failures = 0;
    std::string last_problem;
    error_code last_cause;
    /// Connections that ended with requests unanswered, and were not killed on the server.
    std::map<std::uint64_t, unproven> unproven_links;
    std::set<std::string> warned;

    std::shared_ptr<link> messages;
    bool messages_ready = false;
    bool message_retry_pending = false;
    unsigned message_failures = 0;

    std::vector<completion<closed>> closing;
    lease_clock::time_point close_by = lease_clock::time_point::max();
};

client::client(detail::settings checked, std::weak_ptr<client_events> events)
    : config_(std::move(checked)), events_(std::move(events))
{
}

client::~client() = default;

std::shared_ptr<client> client::make(
    const asio::any_io_executor& executor, detail::settings checked, std::weak_ptr<client_events> events)
{
    auto made = std::make_shared<client>(std::move(checked), std::move(events));
    made->runtime_ = std::make_unique<runtime>(executor);
    colock::detail::context_service::join(executor, made);
    return made;
}

template <class Function, class Initiate>
void client::on_strand(Function function, Initiate initiate)
{
    asio::any_io_executor strand;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        strand = runtime_->strand;
    }
    initiate(strand, [self = shared_from_this(), function = std::move(function)]() mutable { function(*self); });
}

// The queue.

client::batch_ptr client::fresh_batch()
{
    if (spare_.empty())
        return std::make_unique<batch>();
    auto reused = std::move(spare_.back());
    spare_.pop_back();
    return reused;
}

void client::submit(operation_ptr added)
{
    if (added->deadline == lease_clock::time_point{})
        added->deadline = lease_clock::now() + config_.operation_timeout;
    bool first = false;
    {
        const std::lock_guard guard(mutex_);
        if (!runtime_)
            return;
        first = queue_.empty();
        if (first || queue_.back()->size() >= std::clamp(load_ / most_in_flight, least_batch, largest_batch))
            queue_.push_back(fresh_batch());
        queue_.back()->add(std::move(added));
        ++queued_;
    }
    // Whoever finds the queue filled has been preceded by one who has posted, or whose batch in flight will look again.
    if (!first)
        return;
    const auto go_on = [](client& self) { self.flush(); };
    if (one_at_a_time_.exchange(false, std::memory_order_relaxed))
        on_strand(go_on, at_once_if_possible);
    else
        on_strand(go_on);
}

client::batch_ptr client::next_batch(std::size_t unqueued)
{
    const std::lock_guard guard(mutex_);
    if (queue_.empty())
        return nullptr;
    auto next = std::move(queue_.front());
    queue_.pop_front();
    load_ = std::max(queued_ + unqueued, load_ - load_ / 8);
    queued_ -= next->size();
    return next;
}

void client::recycle(batch_ptr used) noexcept
{
    used->clear();
    const std::lock_guard guard(mutex_);
    if (spare_.size() < most_spare)
        spare_.push_back(std::move(used));
}

bool client::queue_empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return queue_.empty();
}

bool client::anchor_due(lease_clock::time_point now) noexcept
{
    auto last = anchored_.load(std::memory_order_relaxed);
    return now.time_since_epoch().count() - last >= anchor_interval.count() &&
           anchored_.compare_exchange_strong(last, now.time_since_epoch().count(), std::memory_order_relaxed);
}

bool client::settled(std::uint64_t number) const noexcept
{
    return !runtime_->unproven_links.contains(number);
}

// Sending.

void client::flush()
{
    auto& run = *runtime_;
    run.used_since_tick = true;
    if (run.now == runtime::phase::idle && !queue_empty())
        connect();
    while (run.now == runtime::phase::open && !run.draining && run.in_flight.size() < most_in_flight) {
        auto unqueued = run.operations_in_flight;
        for (const auto& each : run.answers)
            unqueued += each->size();
        auto next = next_batch(unqueued);
        if (!next)
            break;
        if (next->empty())
            recycle(std::move(next));
        else
            send(std::move(next));
    }
    arm_tick();
}

void client::send(batch_ptr next)
{
    auto& run = *runtime_;
    const auto number = run.commands->number();
    next->set_link(number);
    next->complete(config_.fence_key);
    auto* const reading = next.get();
    run.in_flight.push_back(reading);
    run.operations_in_flight += reading->size();
    run.commands->exec(reading->request(), exchange::adapter_for(*reading, *run.commands),
        [self = shared_from_this(), on = run.commands, sent = std::move(next), number](
            const error_code& code, std::size_t) mutable { self->answered(std::move(sent), number, code); });
}

void client::answered(batch_ptr sent, std::uint64_t number, const error_code& code)
{
    auto& run = *runtime_;
    std::erase(run.in_flight, sent.get());
    run.operations_in_flight -= sent->size();
    if (sent->refused_as_replica())
        run.draining = true;
    if (code && run.disowned) {
        sent->finish(make_failure(errc::outcome_unknown, "the connection belongs to the parent process", code));
        recycle(std::move(sent));
    } else if (code) {
        // Before anyone is told: what is unanswered may arrive late until that connection is known to be dead.
        run.unproven_links.try_emplace(number, runtime::unproven{run.client_id, run.run_id});
        if (run.unproven_links.size() > most_unproven)
            run.unproven_links.erase(run.unproven_links.begin());
        sent->finish(make_failure(errc::outcome_unknown, "the connection was lost before the answer", code));
        recycle(std::move(sent));
    } else {
        run.answers.push_back(std::move(sent));
    }

    if (run.now == runtime::phase::ending)
        after_loss();
    else if (run.draining && run.in_flight.empty())
        run.commands->close();
    else if (!queue_empty())
        flush();
    tell();
}

void client::tell()
{
    auto& run = *runtime_;
    while (!run.telling && !run.answers.empty()) {
        auto told = std::move(run.answers.front());
        run.answers.pop_front();
        const bool alone = told->size() < least_batch;
        told->finish(nullptr);
        recycle(std::move(told));
        if (alone)
            continue;
        // Two batches may have been answered together. What follows the first is sent before the second is told, or
        // they would stay together, with the server idle while we work and the other way round.
        run.telling = true;
        asio::post(run.strand, [self = shared_from_this()] {
            self->flush();
            asio::post(self->runtime_->strand, [self] {
                self->runtime_->telling = false;
                self->tell();
            });
        });
    }
    if (!queue_empty())
        flush();
    else if (run.now == runtime::phase::open && run.in_flight.empty() && run.answers.empty() && !run.telling)
        one_at_a_time_.store(true, std::memory_order_relaxed);
}

void client::end_unsent(std::vector<operation_ptr> given_up)
{
    if (given_up.empty())
        return;
    auto& run = *runtime_;
    auto detail =
        "not sent within the operation timeout" + (run.last_problem.empty() ? std::string() : ": " + run.last_problem);
    const auto why = make_failure(errc::unavailable, std::move(detail), run.last_cause);
    for (auto& each : given_up) {
        auto& ended = *each;
        ended.end(std::move(each), delivery::unsent, why);
    }
}

void client::fail_queue(const failure_ptr& why)
{
    std::deque<batch_ptr> failed;
    {
        const std::lock_guard guard(mutex_);
        failed.swap(queue_);
        queued_ = 0;
    }
    for (auto& each : failed) {
        for (auto& owner : each->take_all()) {
            auto& ended = *owner;
            ended.end(std::move(owner), delivery::unsent, why);
        }
        recycle(std::move(each));
    }
}

// Connecting: find the server, greet it, settle what the previous connection has left, then open the queue.

void client::connect()
{
    auto& run = *runtime_;
    run.now = runtime::phase::connecting;
    run.draining = false;
    run.disowned = false;
    if (config_.where.tls && !run.tls) {
        try {
            run.tls = std::make_unique<tls_material>(config_.tls);
        } catch (const error& refused) {
            refuse(make_failure(errc::invalid_options, refused.detail(), refused.cause()));
            return;
        }
    }
    if (config_.where.master.empty())
        connect_to(config_.where.socket_path.empty() ? config_.where.hosts.front() : endpoint{});
    else
        ask_sentinel(0);
}

void client::ask_sentinel(std::size_t which)
{
    auto& run = *runtime_;
    if (which == config_.where.hosts.size()) {
        retry_later("no Sentinel could name the master " + config_.where.master, {});
        return;
    }
    auto context = run.tls ? run.tls->share() : asio::ssl::context(asio::ssl::context::tls_client);
    const auto sentinel = std::make_shared<link>(
        run.strand, config_, config_.where.hosts[which], config_.where.tls, std::move(context), ++run.numbers);
    // Held by its own operations; the answer ends it.
    run.commands = sentinel;
    const auto found = std::make_shared<endpoint>();
    exchange::start(
        sentinel,
        [self = shared_from_this()](boost::redis::request& request) {
            const auto& config = self->config_;
            if (config.sentinel_password.empty())
                request.push("HELLO", "3");
            else
                request.push("HELLO", "3", "AUTH",
                    config.sentinel_user.empty() ? std::string("default") : config.sentinel_user,
                    config.sentinel_password);
            request.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", config.where.master);
        },
        [self = shared_from_this(), sentinel, found](delivery how, const reply_list& replies) {
            if (how == delivery::answered && replies[1].is(reply::kind::array) && replies[1].items.size() == 2)
                *found = {replies[1].at(0).text, replies[1].at(1).text};
            if (how == delivery::answered && replies[1].is_error())
                self->runtime_->last_problem = "a Sentinel answered: " + replies[1].text.substr(0, 100);
            sentinel->close();
        });
    sentinel->run([self = shared_from_this(), sentinel, found, which](const error_code&) {
        sentinel->close();
        if (self->runtime_->now != runtime::phase::connecting || self->runtime_->commands != sentinel)
            return;
        asio::post(self->runtime_->strand, [old = sentinel] {});
        if (found->host.empty())
            self->ask_sentinel(which + 1);
        else
            self->connect_to(*found);
    });
}

void client::connect_to(const endpoint& where)
{
    auto& run = *runtime_;
    run.server = where;
    auto context = run.tls ? run.tls->share() : asio::ssl::context(asio::ssl::context::tls_client);
    run.commands =
        std::make_shared<link>(run.strand, config_, where, config_.where.tls, std::move(context), ++run.numbers);
    greet();
    run.commands->run([self = shared_from_this(), used = run.commands](const error_code& code) {
        // What waits for a connection in the driver is told that there is none.
        used->close();
        if (self->runtime_->commands == used)
            self->command_link_ended(code);
    });
}

namespace {

void push_greeting(boost::redis::request& request, const location& who)
{
    if (who.password.empty())
        request.push("HELLO", "3", "SETNAME", "colock");
    else
        request.push("HELLO", "3", "AUTH", who.user.empty() ? std::string("default") : who.user, who.password,
            "SETNAME", "colock");
}

} // namespace

void client::greet()
{
    auto& run = *runtime_;
    const std::size_t info_at = config_.where.database == 0 ? 1 : 2;
    exchange::start(
        run.commands,
        [self = shared_from_this()](boost::redis::request& request) {
            push_greeting(request, self->config_.where);
            if (self->config_.where.database != 0)
                request.push("SELECT", self->config_.where.database);
            request.push("INFO");
        },
        [self = shared_from_this(), used = run.commands, info_at](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->runtime_->commands == used)
                self->greeted(replies, info_at);
        });
}

void client::greeted(const reply_list& replies, std::size_t info_at)
{
    auto& run = *runtime_;
    const auto& hello = replies[0];
    if (hello.is_error() || !hello.is(reply::kind::array)) {
        const auto why = refusal(hello);
        if (why->code == errc::unavailable)
            retry_later(why->detail, {});
        else
            refuse(why);
        return;
    }
    run.client_id = 0;
    std::string role;
    for (std::size_t i = 0; i + 1 < hello.items.size(); i += 2) {
        if (hello.items[i].text == "id")
            run.client_id = hello.items[i + 1].number;
        else if (hello.items[i].text == "role")
            role = hello.items[i + 1].text;
    }
    if (info_at == 2 && replies[1].is_error()) {
        refuse(refusal(replies[1]));
        return;
    }
    if (role != "master" && !role.empty()) {
        retry_later("the server is a replica", {});
        return;
    }
    const auto& info = replies[info_at];
    if (info.is_error() && refusal_code(info.text) == errc::unavailable) {
        retry_later(refusal(info)->detail, {});
        return;
    }
    if (too_old(info.text)) {
        refuse(make_failure(errc::misconfigured_backend, "the server is older than Redis 6.2; update it"));
        return;
    }
    run.run_id = info.is_error() ? std::string() : std::string(info_field(info.text, "run_id"));
    inspect_server(info);
    run.commands->send_at_once();
    settle_previous();
}

void client::inspect_server(const reply& info)
{
    if (info.is_error()) {
        warn_once("INFO is not allowed, so the server's settings cannot be checked");
        return;
    }
    const auto field = [&](std::string_view name) { return info_field(info.text, name); };
    if (const auto policy = field("maxmemory_policy"); !policy.empty() && policy != "noeviction") {
        warn_once("the server may evict locks (maxmemory-policy " + std::string(policy) + "); set it to noeviction");
    }
    if (field("aof_enabled") == "0")
        warn_once("the server keeps no append-only file: a restart loses locks and gives them to others");
    if (const auto replicas = field("connected_slaves"); !replicas.empty() && replicas != "0")
        warn_once("the server has replicas: a failover can lose a lock that was granted just before");
}

void client::settle_previous()
{
    auto& run = *runtime_;
    // Client ids start anew with the server's process: to kill one of another process would hit a stranger.
    std::erase_if(run.unproven_links, [&](const auto& each) {
        return !run.run_id.empty() && !each.second.run_id.empty() && each.second.run_id != run.run_id;
    });
    std::vector<std::uint64_t> killed;
    std::vector<std::int64_t> ids;
    for (const auto& [number, each] : run.unproven_links) {
        if (each.refused)
            continue;
        killed.push_back(number);
        ids.push_back(each.client_id);
    }
    if (ids.empty() && config_.plain()) {
        opened();
        return;
    }
    exchange::start(
        run.commands,
        [self = shared_from_this(), ids](boost::redis::request& request) {
            for (const auto id : ids)
                request.push("CLIENT", "KILL", "ID", id);
            if (!self->config_.plain())
                scripts::get().anchor.push(request, script::form::whole, 1, self->config_.fence_key);
        },
        [self = shared_from_this(), used = run.commands, killed](delivery how, const reply_list& replies) {
            if (how == delivery::answered && self->runtime_->commands == used)
                self->settled_previous(replies, killed);
        });
}

void client::settled_previous(const reply_list& replies, const std::vector<std::uint64_t>& killed)
{
    auto& run = *runtime_;
    for (std::size_t i = 0; i < killed.size(); ++i) {
        if (replies[i].is(reply::kind::number)) {
            run.unproven_links.erase(killed[i]);
            continue;
        }
        if (const auto found = run.unproven_links.find(killed[i]); found != run.unproven_links.end())
            found->second.refused = true;
        warn_once("CLIENT KILL is not allowed, so an interrupted acquire can only be settled by waiting for its ttl");
    }
    if (!config_.plain() && !replies.back().is(reply::kind::number)) {
        const auto why = refusal(replies.back());
        if (why->code == errc::unavailable)
            retry_later(why->detail, {});
        else
            refuse(why);
        return;
    }
    anchored_.store(lease_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    opened();
}

void client::opened()
{
    auto& run = *runtime_;
    run.now = runtime::phase::open;
    run.failures = 0;
    run.last_problem.clear();
    run.last_cause = {};
    run.used = lease_clock::now();
    if (const auto events = events_.lock()) {
        if (run.announced_loss)
            events->on_reconnected();
        else if (!run.was_ready)
            events->on_ready();
    }
    run.was_ready = true;
    run.announced_loss = false;
    {
        // The user may have been given the right since.
        const std::lock_guard guard(wait_mutex_);
        polls_ = false;
    }
    flush();
    ensure_messages();
}

void client::command_link_ended(const error_code& code)
{
    auto& run = *runtime_;
    const bool was_open = run.now == runtime::phase::open;
    if (run.now == runtime::phase::waiting || run.now == runtime::phase::idle)
        return;
    run.last_cause = code;
    run.last_problem = run.draining ? "the server has become a replica" : code.message();
    run.now = runtime::phase::ending;
    // Two intervals of silence were wait enough.
    run.reconnects_at_once = was_open && code == boost::redis::error::pong_timeout;
    if (was_open && !run.announced_loss) {
        run.announced_loss = true;
        if (const auto events = events_.lock())
            events->on_suspended(code);
    }
    if (!was_open && code.category() == asio::error::get_ssl_category()) {
        refuse(make_failure(
            errc::misconfigured_backend, "no trusted TLS connection to the server: " + code.message(), code));
        return;
    }
    after_loss();
}

void client::after_loss()
{
    auto& run = *runtime_;
    // The next connection is only made when every request of this one has been told of its end.
    if (!run.in_flight.empty())
        return;
    // Destroyed by a fresh handler: this one may be among its own.
    if (run.commands)
        asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
    retry_later(run.last_problem, run.last_cause);
}

void client::retry_later(std::string why, error_code cause)
{
    auto& run = *runtime_;
    run.last_problem = std::move(why);
    run.last_cause = cause;
    if (run.commands) {
        run.commands->close();
        asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
    }
    if (!needed()) {
        run.now = runtime::phase::idle;
        arm_tick();
        finish_close();
        return;
    }
    run.now = runtime::phase::waiting;
    run.retry.expires_after(std::exchange(run.reconnects_at_once, false) ? 0ms : backoff(run.failures++));
    run.retry.async_wait([self = shared_from_this()](const error_code& code) {
        if (code || self->runtime_->now != runtime::phase::waiting)
            return;
        self->runtime_->now = runtime::phase::idle;
        if (self->needed())
            self->connect();
    });
    arm_tick();
}

void client::refuse(const failure_ptr& why)
{
    auto& run = *runtime_;
    run.last_problem = why->detail;
    run.now = runtime::phase::idle;
    if (run.commands) {
        run.commands->close();
        asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
    }
    fail_queue(why);
    arm_tick();
}

void client::warn_once(std::string message)
{
    const auto [kept, fresh] = runtime_->warned.insert(std::move(message));
    if (!fresh)
        return;
    if (const auto events = events_.lock())
        events->on_warning(*kept);
}

// Messages.

client::interest::interest(std::shared_ptr<client> owner, std::shared_ptr<channel> watched, std::uint64_t seen) noexcept
    : seen(seen), owner_(std::move(owner)), watched_(std::move(watched))
{
}

client::interest::~interest()
{
    if (owner_)
        owner_->leave(watched_);
}

client::interest client::watch(const std::string& name)
{
    std::shared_ptr<channel> watched;
    std::uint64_t seen = 0;
    {
        const std::lock_guard guard(wait_mutex_);
        auto& known = channels_[name];
        if (!known)
            known = std::make_shared<channel>(name);
        ++known->interested;
        watched = known;
        // On a channel that is armed already, a message may have passed since the watcher last looked at the lock.
        if (known->now != channel::state::armed)
            seen = known->changes.load(std::memory_order_relaxed);
    }
    on_strand([](client& self) {
        self.ensure_messages();
        self.arm_tick();
    });
    return {shared_from_this(), std::move(watched), seen};
}

int client::listens(const std::string& name) const
{
    const std::lock_guard guard(wait_mutex_);
    const auto found = channels_.find(name);
    return found != channels_.end() && found->second->now == channel::state::armed ? 1 : 0;
}

void client::leave(const std::shared_ptr<channel>& watched) noexcept
{
    {
        const std::lock_guard guard(wait_mutex_);
        if (--watched->interested > 0)
            return;
        watched->unused_since = lease_clock::now();
    }
    try {
        on_strand([](client& self) { self.arm_tick(); });
    } catch (...) {
        // The next tick, whoever arms it, finds the channel unused.
    }
}

void client::wait(const std::shared_ptr<channel>& watched, const claim& who, std::uint64_t seen, completion<woken> done)
{
    {
        const std::lock_guard guard(wait_mutex_);
        if (watched->changes.load(std::memory_order_acquire) == seen) {
            watched->waiters.push_back({&who, std::move(done), lease_clock::now()});
            return;
        }
    }
    done(woken{});
}

void client::cancel_wait(const channel& watched, const claim& who) noexcept
{
    completion<woken> dropped;
    const std::lock_guard guard(wait_mutex_);
    auto& waiters = const_cast<channel&>(watched).waiters;
    const auto found = std::ranges::find(waiters, &who, &channel::waiter::who);
    if (found == waiters.end())
        return;
    dropped.swap(found->done);
    waiters.erase(found);
}

std::vector<completion<woken>> client::take_waiters(channel& changed)
{
    changed.changes.fetch_add(1, std::memory_order_acq_rel);
    std::vector<completion<woken>> taken;
    taken.reserve(changed.waiters.size());
    for (auto& each : changed.waiters)
        taken.push_back(std::move(each.done));
    changed.waiters.clear();
    return taken;
}

bool client::watched() const noexcept
{
    const std::lock_guard guard(wait_mutex_);
    return !channels_.empty();
}

void client::ensure_messages()
{
    auto& run = *runtime_;
    {
        const std::lock_guard guard(wait_mutex_);
        if (channels_.empty() || polls_)
            return;
    }
    if (run.messages) {
        subscribe_pending();
        return;
    }
    if (run.message_retry_pending)
        return;
    // The server is found, and its refusals are met, by the connection for commands.
    if (run.now != runtime::phase::open) {
        if (run.now == runtime::phase::idle)
            connect();
        return;
    }
    auto context = run.tls ? run.tls->share() : asio::ssl::context(asio::ssl::context::tls_client);
    run.messages =
        std::make_shared<link>(run.strand, config_, run.server, config_.where.tls, std::move(context), ++run.numbers);
    run.messages_ready = false;
    exchange::start(
        run.messages,
        [self = shared_from_this()](boost::redis::request& request) { push_greeting(request, self->config_.where); },
        [self = shared_from_this(), used = run.messages](delivery how, const reply_list& replies) {
            if (how != delivery::answered || self->runtime_->messages != used)
                return;
            if (replies[0].is_error()) {
                used->close();
                return;
            }
            self->runtime_->messages_ready = true;
            self->runtime_->message_failures = 0;
            used->send_at_once();
            self->subscribe_pending();
        });
    receive_messages();
    run.messages->run([self = shared_from_this(), used = run.messages](const error_code&) {
        used->close();
        if (self->runtime_->messages == used)
            self->message_link_ended();
    });
}

void client::subscribe_pending()
{
    auto& run = *runtime_;
    if (!run.messages_ready)
        return;
    for (;;) {
        std::vector<std::shared_ptr<channel>> asked;
        {
            const std::lock_guard guard(wait_mutex_);
            for (const auto& [name, each] : channels_) {
                if (each->now != channel::state::idle)
                    continue;
                each->now = channel::state::subscribing;
                asked.push_back(each);
                if (asked.size() == most_channels_per_request)
                    break;
            }
        }
        if (asked.empty())
            return;
        // A refused SUBSCRIBE is an error where no reply is expected; the PING behind it takes that up.
        exchange::start(
            run.messages,
            [&asked](boost::redis::request& request) {
                std::vector<std::string_view> names;
                for (const auto& each : asked)
                    names.push_back(each->name);
                request.subscribe(names);
                request.push("PING");
            },
            [self = shared_from_this(), used = run.messages, asked](delivery how, const reply_list& replies) {
                if (how == delivery::answered && self->runtime_->messages == used)
                    self->subscribed(asked, replies[0]);
            });
    }
}

void client::subscribed(const std::vector<std::shared_ptr<channel>>& asked, const reply& answer)
{
    if (answer.is_error()) {
        poll_instead(answer.text);
        return;
    }
    std::vector<completion<woken>> ended;
    {
        const std::lock_guard guard(wait_mutex_);
        for (const auto& each : asked) {
            each->now = channel::state::armed;
            std::ranges::move(take_waiters(*each), std::back_inserter(ended));
        }
    }
    for (auto& each : ended)
        each(woken{});
}

void client::receive_messages()
{
    auto& run = *runtime_;
    run.messages->receive([self = shared_from_this(), used = run.messages](const error_code& code) {
        std::vector<completion<woken>> ended;
        {
            const std::lock_guard guard(self->wait_mutex_);
            for (const auto& name : used->messages()) {
                if (const auto found = self->channels_.find(name); found != self->channels_.end())
                    std::ranges::move(take_waiters(*found->second), std::back_inserter(ended));
            }
        }
        used->messages().clear();
        // The loop goes on first: what is woken may take its time.
        if (!code && self->runtime_->messages == used)
            self->receive_messages();
        for (auto& each : ended)
            each(woken{});
    });
}

void client::message_link_ended()
{
    auto& run = *runtime_;
    asio::post(run.strand, [old = std::exchange(run.messages, nullptr)] {});
    run.messages_ready = false;
    bool wanted = false;
    {
        const std::lock_guard guard(wait_mutex_);
        for (const auto& [name, each] : channels_)
            each->now = channel::state::idle;
        wanted = !channels_.empty() && !polls_;
    }
    if (!wanted) {
        arm_tick();
        return;
    }
    run.message_retry_pending = true;
    run.message_retry.expires_after(backoff(run.message_failures++));
    run.message_retry.async_wait([self = shared_from_this()](const error_code& code) {
        self->runtime_->message_retry_pending = false;
        if (!code)
            self->ensure_messages();
    });
}

void client::poll_instead(std::string why)
{
    auto& run = *runtime_;
    warn_once("messages of releases cannot be received, so waiters poll (" + why.substr(0, 100) + ")");
    std::vector<completion<woken>> ended;
    {
        const std::lock_guard guard(wait_mutex_);
        polls_ = true;
        for (const auto& [name, each] : channels_)
            std::ranges::move(take_waiters(*each), std::back_inserter(ended));
    }
    if (run.messages)
        run.messages->close();
    arm_tick();
    for (auto& each : ended)
        each(woken{});
}

// Time: deadlines, polls, unused channels, idle connections. One timer, and coarse.

bool client::needed() const noexcept
{
    return !queue_empty() || !runtime_->in_flight.empty() || !runtime_->answers.empty() || watched();
}

void client::arm_tick()
{
    auto& run = *runtime_;
    const bool working = needed();
    if (!working && run.now == runtime::phase::idle && !run.messages && run.closing.empty()) {
        // The context may run out of work now, and not when the connection would have been idle for long enough.
        if (std::exchange(run.tick_at, lease_clock::time_point::max()) != lease_clock::time_point::max())
            run.ticker.cancel();
        return;
    }
    lease_clock::duration delay;
    if (working || !run.closing.empty()) {
        delay = std::clamp<lease_clock::duration>(config_.operation_timeout / 20, 5ms, 100ms);
        if (polls_ || config_.plain())
            delay = std::min<lease_clock::duration>(delay, config_.poll_interval);
    } else if (config_.keeps_connection() && !retired_) {
        return;
    } else {
        delay = retired_ ? at_once : std::clamp(config_.idle_timeout, at_once, 60'000ms);
    }
    // An earlier tick will do, and a little later one.
    if (run.tick_at != lease_clock::time_point::max() && run.tick_delay <= delay)
        return;
    const auto at = lease_clock::now() + delay;
    if (run.tick_at <= at + 5ms)
        return;
    run.tick_at = at;
    run.tick_delay = delay;
    run.ticker.expires_after(delay);
    run.ticker.async_wait([self = shared_from_this()](const error_code& code) {
        if (code)
            return;
        self->tick(std::exchange(self->runtime_->tick_at, lease_clock::time_point::max()));
    });
}

void client::tick(lease_clock::time_point due)
{
    auto& run = *runtime_;
    const auto now = lease_clock::now();
    // What was answered while the event loop stood still has not been read yet.
    const auto stood_still = now - due > most_late ? now - due : lease_clock::duration::zero();
    if (std::exchange(run.used_since_tick, false) || !run.in_flight.empty())
        run.used = now;

    std::vector<operation_ptr> unsent;
    {
        const std::lock_guard guard(mutex_);
        for (auto& each : queue_) {
            each->postpone(stood_still);
            auto overdue = each->take_overdue(now);
            if (overdue.empty())
                continue;
            each->rewrite();
            std::ranges::move(overdue, std::back_inserter(unsent));
        }
        std::erase_if(queue_, [](const auto& each) { return each->empty(); });
        queued_ -= unsent.size();
    }
    std::vector<operation_ptr> unanswered;
    for (auto* each : run.in_flight) {
        each->postpone(stood_still);
        std::ranges::move(each->take_overdue(now), std::back_inserter(unanswered));
    }

    std::vector<completion<woken>> woken_by_poll;
    std::vector<std::string> unused;
    {
        const std::lock_guard guard(wait_mutex_);
        const auto linger = std::min<lease_clock::duration>(channel_linger, config_.idle_timeout == 0ms ? 0ms : 1000ms);
        const bool polling = polls_ || config_.plain();
        for (auto at = channels_.begin(); at != channels_.end();) {
            auto& each = *at->second;
            if (polling) {
                for (auto waiter = each.waiters.begin(); waiter != each.waiters.end();) {
                    if (waiter->since + config_.poll_interval > now) {
                        ++waiter;
                        continue;
                    }
                    each.changes.fetch_add(1, std::memory_order_acq_rel);
                    woken_by_poll.push_back(std::move(waiter->done));
                    waiter = each.waiters.erase(waiter);
                }
            }
            if (each.interested == 0 && (each.unused_since + linger <= now || retired_)) {
                if (each.now != channel::state::idle)
                    unused.push_back(each.name);
                at = channels_.erase(at);
            } else {
                ++at;
            }
        }
    }
    if (!unused.empty() && run.messages_ready && watched()) {
        exchange::start(
            run.messages,
            [&unused](boost::redis::request& request) {
                request.unsubscribe(unused);
                request.push("PING");
            },
            [](delivery, const reply_list&) {});
    }

    end_unsent(std::move(unsent));
    if (!unanswered.empty()) {
        const auto why = make_failure(errc::outcome_unknown, "no answer within the operation timeout");
        for (auto& each : unanswered) {
            auto& ended = *each;
            ended.end(std::move(each), delivery::unanswered, why);
        }
    }
    for (auto& each : woken_by_poll)
        each(woken{});

    close_if_idle();
    arm_tick();
}

void client::close_if_idle()
{
    auto& run = *runtime_;
    const auto now = lease_clock::now();
    if (run.messages && !watched())
        run.messages->close();
    const bool overdue = run.close_by <= now;
    if (!needed() || overdue) {
        const bool due = retired_ || !run.closing.empty() ||
                         (!config_.keeps_connection() && now - run.used >= std::max(config_.idle_timeout, at_once));
        if (due)
            begin_close();
    }
    finish_close();
}

void client::begin_close()
{
    auto& run = *runtime_;
    // Whoever has queued since, beyond the deadline of this close, relies on the next attempt to connect.
    if (run.now == runtime::phase::waiting && queue_empty()) {
        run.retry.cancel();
        run.now = runtime::phase::idle;
    }
    if (run.messages)
        run.messages->close();
    if (run.now == runtime::phase::open && run.commands && run.in_flight.empty()) {
        // No loss: nothing is under way, and nobody is told.
        run.now = runtime::phase::idle;
        run.commands->close();
        asio::post(run.strand, [old = std::exchange(run.commands, nullptr)] {});
    }
}

void client::finish_close() noexcept
{
    auto& run = *runtime_;
    if (run.closing.empty())
        return;
    const bool all_closed = run.now == runtime::phase::idle && !run.messages;
    if (!all_closed && run.close_by > lease_clock::now())
        return;
    run.close_by = lease_clock::time_point::max();
    for (auto& each : std::exchange(run.closing, {}))
        each(closed{});
}

void client::close(lease_clock::duration deadline, completion<closed> done)
{
    on_strand([deadline, done = std::move(done)](client& self) mutable {
        auto& run = *self.runtime_;
        run.closing.push_back(std::move(done));
        run.close_by = std::min(run.close_by, saturating_add(lease_clock::now(), deadline));
        self.close_if_idle();
        self.arm_tick();
    });
}

void client::retire() noexcept
{
    retired_ = true;
    try {
        on_strand([](client& self) {
            self.close_if_idle();
            self.arm_tick();
        });
    } catch (...) {
        // Without memory the connection stays until its idle timeout.
    }
}

void client::context_shutdown() noexcept
{
    std::unique_ptr<runtime> dead;
    std::deque<batch_ptr> queued;
    std::unordered_map<std::string, std::shared_ptr<channel>> watched_channels;
    {
        const std::lock_guard guard(mutex_);
        dead = std::move(runtime_);
        queued.swap(queue_);
    }
    {
        const std::lock_guard guard(wait_mutex_);
        watched_channels.swap(channels_);
    }
    std::vector<channel::waiter> waiters;
    for (auto& [name, each] : watched_channels)
        std::ranges::move(std::exchange(each->waiters, {}), std::back_inserter(waiters));
}

void client::context_forked() noexcept
{
    try {
        on_strand([](client& self) {
            // The parent goes on with these connections: the child leaves them without a word, and kills nothing.
            auto& run = *self.runtime_;
            run.disowned = true;
            run.unproven_links.clear();
            if (run.commands)
                run.commands->close();
            if (run.messages)
                run.messages->close();
        });
    } catch (...) {
        // Without memory the child has larger troubles.
    }
}

} // namespace colock::redis::detail
