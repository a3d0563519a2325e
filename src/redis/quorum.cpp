// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "redis/url.hpp"

#include <colock/observer.hpp>

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

namespace colock::redis {

namespace detail {
namespace {

using std::chrono::milliseconds;

/// Between two attempts to take back what a node has granted.
constexpr milliseconds take_back_pause{250};

/// A node's part in one round: a claim of its own. A later round has others, so that what a dead node still has to take
/// back of this one is in nobody's way.
///
/// The seam allows one operation per claim at a time, and a round is decided before every node has answered: what is
/// asked of a node whose create is under way has to wait.
///
/// Thread safety: all members may be called from any thread.
class share : public std::enable_shared_from_this<share>
{
public:
    share(std::shared_ptr<adapter> node, claim_ptr claim, milliseconds patience)
        : node_(std::move(node)), claim_(std::move(claim)), patience_(patience)
    {
    }

    /// Again, for a grant that may be there already, or for the first time.
    void create(lease_clock::time_point sent, std::function<void(create_outcome)> done)
    {
        {
            std::unique_lock guard(mutex_);
            if (std::exchange(creating_, true)) {
                guard.unlock();
                done(create_outcome::failed(make_failure(errc::unavailable, "a node has not answered yet")));
                return;
            }
        }
        claim_->set_sent(sent);
        node_->start_create(claim_, [self = shared_from_this(), done = std::move(done)](create_outcome outcome) {
            if (outcome.status == create_status::failed && outcome.error->code == errc::outcome_unknown)
                self->claim_->taint();
            std::vector<std::function<void()>> next;
            {
                const std::lock_guard guard(self->mutex_);
                self->creating_ = false;
                next.swap(self->postponed_);
            }
            done(std::move(outcome));
            for (auto& each : next)
                each();
        });
    }

    void abandon(std::function<void(release_outcome)> done)
    {
        auto act = [self = shared_from_this(), done = std::move(done)] {
            self->claim_->set_sent(lease_clock::now());
            self->node_->start_abandon(self->claim_, done);
        };
        {
            const std::lock_guard guard(mutex_);
            if (creating_) {
                postponed_.push_back(std::move(act));
                return;
            }
        }
        act();
    }

    /// Abandons until the node has answered, or the grant has run out by itself.
    void take_back()
    {
        if (taking_back_.exchange(true))
            return;
        const auto life = claim_->ttl().count() == 0 ? milliseconds(10'000) : claim_->ttl();
        take_back_until(saturating_add(lease_clock::now(), life + patience_));
    }

    void extend(lease_clock::time_point sent, milliseconds ttl, std::function<void(extend_outcome)> done)
    {
        if (creating()) {
            // Nobody waits for a node that has not even granted.
            done({extend_status::failed, make_failure(errc::unavailable, "a node has not answered yet")});
            return;
        }
        claim_->set_sent(sent);
        node_->start_extend(claim_, ttl, std::move(done));
    }

    void is_valid(std::function<void(valid_outcome)> done)
    {
        if (creating())
            done({false, make_failure(errc::unavailable, "a node has not answered yet")});
        else
            node_->start_is_valid(claim_, std::move(done));
    }

    [[nodiscard]] static bool may_succeed_later(const release_outcome& outcome) noexcept
    {
        return outcome.status == release_status::failed &&
               (outcome.error->code == errc::unavailable || outcome.error->code == errc::outcome_unknown);
    }

private:
    [[nodiscard]] bool creating()
    {
        const std::lock_guard guard(mutex_);
        return creating_;
    }

    void take_back_until(lease_clock::time_point end)
    {
        abandon([self = shared_from_this(), end](release_outcome outcome) {
            if (!may_succeed_later(outcome) || lease_clock::now() >= end) {
                self->taking_back_ = false;
                return;
            }
            const auto pause = std::make_shared<asio::steady_timer>(self->node_->executor(), take_back_pause);
            pause->async_wait([self, end, pause](const error_code&) { self->take_back_until(end); });
        });
    }

    const std::shared_ptr<adapter> node_;
    const claim_ptr claim_;
    const milliseconds patience_;
    std::mutex mutex_;
    bool creating_ = false;
    std::atomic<bool> taking_back_{false};
    std::vector<std::function<void()>> postponed_;
};

/// Kept in the slot of the claim that it serves.
struct round
{
    std::vector<std::shared_ptr<share>> shares{};
    /// It was refused, and is being taken back: another begins anew.
    std::atomic<bool> withdrawn{false};
};

round* find_round(const claim& of) noexcept
{
    return static_cast<round*>(of.slot.get());
}

/// Collects the nodes' answers to one question, and ends with the first that decides.
///
/// Thread safety: all members may be called from any thread.
template <class Outcome>
class vote
{
public:
    vote(std::size_t voters, completion<Outcome> done)
        : needed_(voters / 2 + 1), missing_(voters), done_(std::move(done))
    {
    }

    /// Counts an answer. `decide(yes, no, failed, missing)` returns the outcome once there is one.
    template <class Decide>
    void count(std::size_t vote::* of, const failure_ptr& why, Decide decide, const create_outcome* busy = nullptr)
    {
        completion<Outcome> ended;
        std::optional<Outcome> outcome;
        {
            const std::lock_guard guard(mutex_);
            ++(this->*of);
            --missing_;
            if (why && (!why_ || why->code == errc::outcome_unknown))
                why_ = why;
            if (busy && busy->retry_after > busy->retry_after.zero() &&
                (retry_after == retry_after.zero() || busy->retry_after < retry_after))
                retry_after = busy->retry_after;
            if (busy && !busy->holder.empty())
                holder = busy->holder;
            if (!done_)
                return;
            outcome = decide(*this);
            if (!outcome)
                return;
            ended.swap(done_);
        }
        ended(std::move(*outcome));
    }

    [[nodiscard]] bool majority(std::size_t votes) const noexcept { return votes >= needed_; }
    [[nodiscard]] bool possible(std::size_t votes) const noexcept { return votes + missing_ >= needed_; }
    [[nodiscard]] std::size_t missing() const noexcept { return missing_; }
    [[nodiscard]] const failure_ptr& why() const noexcept { return why_; }

    std::size_t yes = 0;
    std::size_t no = 0;
    std::size_t failed = 0;
    /// Of the busy: the shortest time that was told, and some holder.
    lease_clock::duration retry_after{0};
    std::string holder{};

private:
    std::mutex mutex_;
    const std::size_t needed_;
    std::size_t missing_;
    failure_ptr why_;
    completion<Outcome> done_;
};

/// Merges what the nodes list: a lock is held if a majority tells of the same holder. Tokens differ from node to node
/// and are told by none, so that the same holder is one of the same description.
///
/// Thread safety: add may be called from any thread.
class census
{
public:
    census(std::size_t nodes, completion<list_outcome> done)
        : needed_(nodes / 2 + 1), missing_(nodes), done_(std::move(done))
    {
    }

    void add(list_outcome told)
    {
        {
            const std::lock_guard guard(mutex_);
            if (told.error)
                why_ = told.error;
            else
                ++answered_;
            for (auto& each : told.locks) {
                const auto known =
                    std::ranges::find_if(known_, [&](const auto& one) { return same(one.status, each); });
                if (known == known_.end())
                    known_.push_back({std::move(each), 1});
                else if (++known->nodes;
                    each.remaining && (!known->status.remaining || each.remaining < known->status.remaining))
                    known->status.remaining = each.remaining;
            }
            if (--missing_ > 0)
                return;
        }
        list_outcome result;
        if (answered_ < needed_)
            result.error = why_;
        for (auto& one : known_) {
            if (!result.error && one.nodes >= needed_)
                result.locks.push_back(std::move(one.status));
        }
        done_(std::move(result));
    }

private:
    struct entry
    {
        lock_status status;
        std::size_t nodes;
    };
    static bool same(const lock_status& one, const lock_status& other)
    {
        return one.key == other.key && one.owner == other.owner && one.host == other.host &&
               one.comment == other.comment && one.group == other.group;
    }

    std::mutex mutex_;
    const std::size_t needed_;
    std::size_t missing_;
    std::size_t answered_ = 0;
    failure_ptr why_;
    std::vector<entry> known_;
    completion<list_outcome> done_;
};

} // namespace

/// The adapters of independent masters, as one.
class quorum_adapter final : public adapter
{
public:
    quorum_adapter(asio::any_io_executor executor, std::vector<std::shared_ptr<adapter>> nodes, const options& settings)
        : adapter(std::move(executor)), nodes_(std::move(nodes)), patience_(*settings.operation_timeout),
          poll_interval_(settings.poll_interval)
    {
    }

    /// What the nodes tell of themselves is told on.
    void listen()
    {
        listener_ = std::make_shared<relay>(*this);
        for (const auto& node : nodes_)
            node->attach(listener_);
    }
    ~quorum_adapter() override
    {
        if (listener_)
            listener_->stop();
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "redis quorum"; }
    [[nodiscard]] colock::capabilities capabilities() const noexcept override { return {.no_ttl = true, .list = true}; }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        auto begun = std::static_pointer_cast<round>(claim->slot);
        if (!begun || begun->withdrawn) {
            begun = std::make_shared<round>();
            for (const auto& node : nodes_)
                begun->shares.push_back(
                    std::make_shared<share>(node, claim_ptr(new colock::claim(request_like(*claim))), patience_));
            claim->slot = begun;
        }
        const auto soon = poll_delay();
        auto decided = [begun, soon, done = std::move(done)](create_outcome outcome) mutable {
            if (outcome.status != create_status::granted) {
                // A minority's grants would be in the way of everybody, ourselves included.
                begun->withdrawn = true;
                for (const auto& each : begun->shares)
                    each->take_back();
                if (outcome.retry_after == outcome.retry_after.zero() || outcome.retry_after > soon)
                    outcome.retry_after = soon;
            }
            done(std::move(outcome));
        };
        const auto votes = std::make_shared<vote<create_outcome>>(nodes_.size(), std::move(decided));
        for (const auto& each : begun->shares) {
            each->create(claim->sent(), [votes](create_outcome outcome) {
                using tally = vote<create_outcome>;
                if (outcome.status == create_status::granted)
                    votes->count(&tally::yes, nullptr, decide_create);
                else if (outcome.status == create_status::busy)
                    votes->count(&tally::no, nullptr, decide_create, &outcome);
                else
                    votes->count(&tally::failed, outcome.error, decide_create);
            });
        }
    }

    void start_release(claim_ptr claim, completion<release_outcome> done) override
    {
        give_back(claim, std::move(done));
    }
    void start_abandon(claim_ptr claim, completion<release_outcome> done) override
    {
        give_back(claim, std::move(done));
    }

    void start_extend(claim_ptr claim, milliseconds ttl, completion<extend_outcome> done) override
    {
        const auto* const held = find_round(*claim);
        if (!held) {
            done({extend_status::not_held, nullptr});
            return;
        }
        const auto votes = std::make_shared<vote<extend_outcome>>(nodes_.size(), std::move(done));
        for (const auto& each : held->shares) {
            each->extend(claim->sent(), ttl, [votes](extend_outcome outcome) {
                using tally = vote<extend_outcome>;
                if (outcome.status == extend_status::extended)
                    votes->count(&tally::yes, nullptr, decide_extend);
                else if (outcome.status == extend_status::not_held)
                    votes->count(&tally::no, nullptr, decide_extend);
                else
                    votes->count(&tally::failed, outcome.error, decide_extend);
            });
        }
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        const auto* const held = find_round(*claim);
        if (!held) {
            done({false, nullptr});
            return;
        }
        const auto votes = std::make_shared<vote<valid_outcome>>(nodes_.size(), std::move(done));
        for (const auto& each : held->shares) {
            each->is_valid([votes](valid_outcome outcome) {
                using tally = vote<valid_outcome>;
                if (outcome.error)
                    votes->count(&tally::failed, outcome.error, decide_valid);
                else
                    votes->count(outcome.valid ? &tally::yes : &tally::no, nullptr, decide_valid);
            });
        }
    }

    void start_inspect(std::string key, completion<list_outcome> done) override
    {
        const auto all = std::make_shared<census>(nodes_.size(), std::move(done));
        for (const auto& node : nodes_)
            node->start_inspect(key, [all](list_outcome outcome) { all->add(std::move(outcome)); });
    }
    void start_break(std::string key, completion<list_outcome> done) override
    {
        const auto all = std::make_shared<census>(nodes_.size(), std::move(done));
        for (const auto& node : nodes_)
            node->start_break(key, [all](list_outcome outcome) { all->add(std::move(outcome)); });
    }
    void start_list(filter which, completion<list_outcome> done) override
    {
        const auto all = std::make_shared<census>(nodes_.size(), std::move(done));
        for (const auto& node : nodes_)
            node->start_list(which, [all](list_outcome outcome) { all->add(std::move(outcome)); });
    }
    /// Exclusive locks expire by themselves.
    void start_purge(std::size_t, completion<list_outcome> done) override { done({}); }

    void start_close(lease_clock::duration deadline, completion<closed> done) override
    {
        const auto missing = std::make_shared<std::atomic<std::size_t>>(nodes_.size());
        const auto last = std::make_shared<completion<closed>>(std::move(done));
        for (const auto& node : nodes_) {
            node->start_close(deadline, [missing, last](closed) {
                if (missing->fetch_sub(1) == 1)
                    (*last)(closed{});
            });
        }
    }

private:
    class relay final : public observer
    {
    public:
        explicit relay(quorum_adapter& target) : target_(&target) {}
        void stop() noexcept
        {
            const std::lock_guard guard(mutex_);
            target_ = nullptr;
        }
        void reconnected(std::string_view) noexcept override
        {
            if (const auto to = target())
                to->notify_reconnected();
        }
        void warning(std::string_view, std::string_view message) noexcept override
        {
            if (const auto to = target())
                to->notify_warning(message);
        }

    private:
        std::shared_ptr<quorum_adapter> target() noexcept
        {
            const std::lock_guard guard(mutex_);
            return target_ ? std::static_pointer_cast<quorum_adapter>(target_->weak_from_this().lock()) : nullptr;
        }
        std::mutex mutex_;
        quorum_adapter* target_;
    };

    static claim_request request_like(const claim& of)
    {
        return {.key = of.key(),
            .mode = of.mode(),
            .max_holders = 0,
            .ttl = of.ttl(),
            .queues = false,
            .owner = std::make_shared<const owner_data>(of.owner())};
    }

    static std::optional<create_outcome> decide_create(const vote<create_outcome>& so_far)
    {
        if (so_far.majority(so_far.yes))
            return create_outcome::granted(0);
        if (so_far.possible(so_far.yes))
            return std::nullopt;
        if (so_far.no > 0)
            return create_outcome::busy(so_far.retry_after, so_far.holder);
        return create_outcome::failed(so_far.why());
    }

    static std::optional<extend_outcome> decide_extend(const vote<extend_outcome>& so_far)
    {
        if (so_far.majority(so_far.yes))
            return extend_outcome{extend_status::extended, nullptr};
        if (so_far.possible(so_far.yes))
            return std::nullopt;
        if (!so_far.possible(so_far.yes + so_far.failed))
            return extend_outcome{extend_status::not_held, nullptr};
        if (so_far.missing() > 0)
            return std::nullopt;
        return extend_outcome{extend_status::failed, so_far.why()};
    }

    static std::optional<valid_outcome> decide_valid(const vote<valid_outcome>& so_far)
    {
        if (so_far.majority(so_far.yes))
            return valid_outcome{true, nullptr};
        if (so_far.possible(so_far.yes))
            return std::nullopt;
        if (!so_far.possible(so_far.yes + so_far.failed))
            return valid_outcome{false, nullptr};
        if (so_far.missing() > 0)
            return std::nullopt;
        return valid_outcome{false, so_far.why()};
    }

    /// A majority that holds nothing leaves no majority to hold.
    static std::optional<release_outcome> decide_release(const vote<release_outcome>& so_far)
    {
        const auto answered = so_far.yes + so_far.no;
        if (so_far.majority(answered))
            return release_outcome{so_far.yes > 0 ? release_status::released : release_status::not_held, nullptr};
        if (so_far.possible(answered))
            return std::nullopt;
        return release_outcome{release_status::failed, so_far.why()};
    }

    /// Every share is abandoned: on a node whose reply is missing nobody knows what it has granted.
    void give_back(const claim_ptr& claim, completion<release_outcome> done)
    {
        const auto* const held = find_round(*claim);
        if (!held) {
            done({release_status::not_held, nullptr});
            return;
        }
        const auto votes = std::make_shared<vote<release_outcome>>(nodes_.size(), std::move(done));
        for (const auto& each : held->shares) {
            each->abandon([votes, each](release_outcome outcome) {
                using tally = vote<release_outcome>;
                if (outcome.status == release_status::failed) {
                    if (share::may_succeed_later(outcome))
                        each->take_back();
                    votes->count(&tally::failed, outcome.error, decide_release);
                } else {
                    votes->count(
                        outcome.status == release_status::released ? &tally::yes : &tally::no, nullptr, decide_release);
                }
            });
        }
    }

    /// Two that have each won a minority must not meet again in step.
    [[nodiscard]] lease_clock::duration poll_delay() const
    {
        static thread_local std::minstd_rand random(std::random_device{}());
        return std::chrono::duration_cast<lease_clock::duration>(
            poll_interval_ * std::uniform_real_distribution<>(0.5, 1.5)(random));
    }

    const std::vector<std::shared_ptr<adapter>> nodes_;
    const milliseconds patience_;
    const milliseconds poll_interval_;
    std::shared_ptr<relay> listener_;
};

} // namespace detail

std::shared_ptr<adapter> make_quorum(
    asio::any_io_executor executor, const std::vector<std::string>& urls, options settings)
{
    if (urls.size() < 3 || urls.size() % 2 == 0)
        detail::refuse_options("a quorum needs an odd number of masters, at least three");
    settings.operation_timeout = settings.operation_timeout.value_or(std::chrono::milliseconds(500));
    std::vector<std::shared_ptr<adapter>> nodes;
    std::vector<detail::location> places;
    for (const auto& url : urls) {
        settings.url = url;
        // The same server twice would be two votes for one memory.
        auto place = detail::parse_url(url);
        place.user.clear();
        place.password.clear();
        place.database = 0;
        if (std::ranges::find(places, place) != places.end())
            detail::refuse_options("a quorum names a master twice");
        places.push_back(std::move(place));
        nodes.push_back(make_adapter(executor, settings));
    }
    auto made = std::make_shared<detail::quorum_adapter>(std::move(executor), std::move(nodes), settings);
    made->listen();
    return made;
}

} // namespace colock::redis
