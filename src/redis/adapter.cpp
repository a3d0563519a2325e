// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/redis/adapter.hpp>

#include "redis/client.hpp"
#include "redis/failures.hpp"
#include "redis/scripts.hpp"
#include "remote/epochs.hpp"
#include "remote/stored_owner.hpp"
#include "remote/wait_sources.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace colock::redis {

namespace detail {
namespace {

using std::chrono::milliseconds;

/// The counter is kept above the server's clock in microseconds: less than this was not, since its data was lost.
constexpr std::int64_t least_fence = 1'600'000'000'000'000;
/// A writer's intent outlives this many milliseconds without the writer: about three of its safety polls.
constexpr int intent_ms = 6000;
/// What PTTL answers then.
constexpr std::int64_t no_such_key = -2;
constexpr std::size_t scan_count = 1000;
constexpr std::size_t keys_per_script = 200;

/// What the adapter keeps with a claim that did not go the short way.
struct claim_state
{
    /// Creates of this claim that were sent, and not answered.
    remote::doubts creates{};
    /// The same of extensions: they create nothing, but set the time that is left.
    remote::doubts extends{};
    /// Of the last create that was answered.
    bool granted = false;
    /// A writer's intent of ours may exist.
    bool intent = false;
    /// Part of a shared holder's name, so it stays.
    std::int64_t created = remote::wall_clock_ms();
    std::optional<remote::interest> source{};
};

claim_state* find_state(const claim& of) noexcept
{
    return static_cast<claim_state*>(of.slot.get());
}

claim_state& state_of(claim& of)
{
    if (!of.slot)
        of.slot = std::make_shared<claim_state>();
    return *find_state(of);
}

const std::string& lock_key(const settings& config, std::string_view key)
{
    static thread_local std::string name;
    (name = config.prefix) += key;
    return name;
}

const std::string& intent_key(const settings& config, std::string_view key)
{
    static thread_local std::string name;
    (name = config.intent_prefix) += key;
    return name;
}

const std::string& token_of(const claim& of)
{
    static thread_local std::string text(2 * token::size, '\0');
    of.token().hex_to(text.data());
    return text;
}

/// What is stored for a claim: its token, and in the standard layout what people may want to know. A letter that no
/// token starts with tells a reader from a writer.
const std::string& value_of(const settings& config, const claim& of)
{
    static thread_local std::string text;
    if (config.plain())
        return token_of(of);
    text.assign(of.mode() == lock_mode::shared ? 1 : 0, 's');
    const auto* const state = find_state(of);
    const auto token_at = text.size();
    text.resize(token_at + 2 * token::size);
    of.token().hex_to(text.data() + token_at);
    remote::append_stored_owner(text, of.shared_owner(), state ? state->created : remote::wall_clock_ms());
    return text;
}

/// An answer came on `link`: lets go of every doubt that it has disproved. Requests of one connection are carried out
/// in order; what another has left is told by the client.
void note_answer(const client& owner, claim& of, std::uint64_t link)
{
    auto* const state = find_state(of);
    if (!state || (state->creates.empty() && state->extends.empty()))
        return;
    static_cast<void>(state->extends.disproved_by(link, owner.connections()));
    if (state->creates.disproved_by(link, owner.connections()))
        of.clear_taint();
    if (state->creates.empty() && state->extends.empty())
        of.clear_late();
}

lease_clock::duration remaining_of(const reply& milliseconds_left)
{
    // In its last millisecond a key has 0 left, which here would mean that nobody knows.
    return milliseconds_left.number >= 0 ? milliseconds(std::max<std::int64_t>(milliseconds_left.number, 1))
                                         : milliseconds(0);
}

/// Counted from when the core sent it; left open without that.
lease_clock::time_point deadline_of(const claim& of, const client& owner)
{
    const auto sent = of.sent();
    return sent == lease_clock::time_point{} ? sent : owner.config().deadlines().of(sent);
}

failure_ptr in_doubt()
{
    return make_failure(errc::outcome_unknown,
        "an earlier request of this acquisition was lost with its connection, and cannot be proven to be dead");
}

/// One script, by its digest first.
class script_operation : public operation
{
public:
    explicit script_operation(client& owner) : owner_(owner) {}

    void write(boost::redis::request& request) final { push(request, form_); }
    void end(operation_ptr self, delivery how, failure_ptr why) final
    {
        if (how != delivery::answered) {
            failed(how, std::move(why));
        } else if (form_ == script::form::digest && std::ranges::any_of(replies, is_noscript)) {
            form_ = script::form::whole;
            resubmit(std::move(self));
        } else {
            answered(std::move(self));
        }
    }

protected:
    virtual void push(boost::redis::request& request, script::form form) = 0;
    virtual void answered(operation_ptr self) = 0;
    virtual void failed(delivery how, failure_ptr why) = 0;

    void resubmit(operation_ptr self)
    {
        replies.clear();
        owner_.submit(std::move(self));
    }
    [[nodiscard]] const settings& config() const noexcept { return owner_.config(); }
    [[nodiscard]] script::form form() const noexcept { return form_; }

    client& owner_;

private:
    script::form form_ = script::form::digest;
};

class create_operation final : public operation
{
public:
    enum class step : unsigned char
    {
        /// SET NX, and a fence with those of the batch. A reader asks with them whether a writer waits.
        short_way,
        by_script,
        by_whole_script,
        /// Held, but with a fence that was not above the clock.
        lift_fence,
        /// Held, but without a fence: given back before that is reported.
        undo,
        /// Held, but a writer was there first: the same.
        give_way,
    };

    create_operation(client& owner, claim_ptr claim, completion<create_outcome> done, step first)
        : owner_(owner), claim_(std::move(claim)), done_(std::move(done)), step_(first)
    {
        deadline = deadline_of(*claim_, owner);
    }

    void write(boost::redis::request& request) override
    {
        const auto& config = owner_.config();
        const auto& key = lock_key(config, claim_->key());
        const auto ttl = claim_->ttl().count();
        switch (step_) {
        case step::short_way: {
            anchored_ = !config.plain() && owner_.anchor_due(deadline - config.operation_timeout);
            if (anchored_)
                owner_.push_anchor(request, script::form::digest);
            const auto& value = value_of(config, *claim_);
            if (ttl > 0)
                request.push("SET", key, value, "NX", "PX", ttl);
            else
                request.push("SET", key, value, "NX");
            if (claim_->mode() == lock_mode::shared)
                request.push("PTTL", intent_key(config, claim_->key()));
            return;
        }
        case step::by_script:
        case step::by_whole_script:
            push_script(request, step_ == step::by_script ? script::form::digest : script::form::whole, key);
            return;
        case step::lift_fence:
            owner_.push_anchor(request, script::form::whole);
            request.push("INCR", config.fence_key);
            return;
        case step::undo:
        case step::give_way:
            if (claim_->mode() == lock_mode::exclusive)
                scripts::get().release.push(request, script::form::whole, 2, key, config.probe_key, token_of(*claim_));
            else
                scripts::get().release_shared.push(
                    request, script::form::whole, 2, key, config.probe_key, value_of(config, *claim_), ttl);
            return;
        }
    }

    [[nodiscard]] bool unwanted() const noexcept override
    {
        const bool holds = step_ == step::lift_fence || step_ == step::undo || step_ == step::give_way;
        return claim_->cancelled() && !holds;
    }

    [[nodiscard]] bool wants_fence() const noexcept override
    {
        return step_ == step::short_way && !owner_.config().plain();
    }

    void end(operation_ptr self, delivery how, failure_ptr why) override
    {
        if (how == delivery::answered) {
            answered(std::move(self));
            return;
        }
        const bool held = step_ == step::lift_fence || step_ == step::undo || step_ == step::give_way;
        if (how == delivery::unanswered || held) {
            auto& state = state_of(*claim_);
            state.granted = state.granted || held;
            if (how == delivery::unanswered) {
                state.creates.add(sent_on);
                // The answer that was lost may have told of one.
                const bool by_script = step_ == step::by_script || step_ == step::by_whole_script;
                state.intent = state.intent || (by_script && claim_->queues());
                if (step_ == step::undo || step_ == step::give_way)
                    claim_->spend();
            }
            if (why->code != errc::outcome_unknown)
                why = make_failure(errc::outcome_unknown, why->detail, why->cause);
        }
        done_(create_outcome::failed(std::move(why)));
    }

private:
    void push_script(boost::redis::request& request, script::form form, const std::string& key)
    {
        const auto& config = owner_.config();
        const auto& all = scripts::get();
        const auto& value = value_of(config, *claim_);
        const auto ttl = claim_->ttl().count();
        const auto& intent = intent_key(config, claim_->key());
        const auto* const state = find_state(*claim_);
        if (config.plain())
            all.acquire_plain.push(request, form, 1, key, value, ttl);
        else if (claim_->mode() == lock_mode::exclusive)
            all.acquire.push(request, form, 3, key, config.fence_key, intent, value, ttl,
                claim_->queues() ? intent_ms : 0, state && state->intent ? 1 : 0);
        else
            all.acquire_shared.push(
                request, form, 4, key, config.fence_key, intent, config.probe_key, value, ttl, claim_->max_holders());
    }

    void go_on(operation_ptr self, step next)
    {
        step_ = next;
        replies.clear();
        owner_.submit(std::move(self));
    }

    void answered(operation_ptr self)
    {
        switch (step_) {
        case step::short_way:
            short_way_answered(std::move(self));
            return;
        case step::by_script:
        case step::by_whole_script:
            script_answered(std::move(self));
            return;
        case step::lift_fence:
            if (replies[1].is(reply::kind::number) && replies[1].number >= least_fence) {
                granted(std::move(self), replies[1].number);
            } else {
                problem_ = refusal(replies[0].is_error() ? replies[0] : replies[1]);
                go_on(std::move(self), step::undo);
            }
            return;
        case step::undo:
        case step::give_way:
            if (!replies[0].is(reply::kind::number)) {
                state_of(*claim_).granted = true;
                done_(create_outcome::failed(
                    make_failure(errc::outcome_unknown, problem_ ? problem_->detail : refusal(replies[0])->detail)));
            } else if (step_ == step::give_way) {
                done_(create_outcome::busy(writer_, std::string()));
            } else {
                done_(create_outcome::failed(problem_));
            }
            return;
        }
    }

    void short_way_answered(operation_ptr self)
    {
        const std::size_t first = anchored_ ? 1 : 0;
        const reply& set = replies[first];
        if (set.is_error()) {
            done_(create_outcome::failed(refusal(set)));
            return;
        }
        if (!set.is(reply::kind::text)) {
            go_on(std::move(self), step::by_script);
            return;
        }
        if (owner_.config().plain()) {
            granted(std::move(self), least_fence);
            return;
        }
        const reply* const writer = claim_->mode() == lock_mode::shared ? &replies[first + 1] : nullptr;
        if (!fence.is(reply::kind::number) || (writer && !writer->is(reply::kind::number))) {
            problem_ = refusal(fence.is(reply::kind::number) ? *writer : fence);
            go_on(std::move(self), step::undo);
        } else if (writer && writer->number != no_such_key) {
            owner_.writers().saw(*claim_);
            writer_ = remaining_of(*writer);
            go_on(std::move(self), step::give_way);
        } else {
            granted(std::move(self), fence.number);
        }
    }

    void script_answered(operation_ptr self)
    {
        const reply& answer = replies[0];
        if (step_ == step::by_script && is_noscript(answer)) {
            go_on(std::move(self), step::by_whole_script);
            return;
        }
        if (!answer.is(reply::kind::array)) {
            done_(create_outcome::failed(refusal(answer)));
            return;
        }
        if (answer.at(0).number == 1) {
            granted(std::move(self), owner_.config().plain() ? least_fence : answer.at(1).number);
            return;
        }
        auto& state = state_of(*claim_);
        state.granted = false;
        if (answer.items.size() > 3) {
            state.intent = true;
            owner_.writers().saw(*claim_);
        }
        note_answer(owner_, *claim_, sent_on);
        const auto holder = remote::parse_stored_owner(answer.at(2).text);
        done_(create_outcome::busy(remaining_of(answer.at(1)), holder ? holder->owner.owner : std::string()));
    }

    void granted(operation_ptr self, std::int64_t fence)
    {
        if (fence < least_fence) {
            go_on(std::move(self), step::lift_fence);
            return;
        }
        if (!owner_.config().plain())
            owner_.saw_fence(fence);
        if (auto* const state = find_state(*claim_)) {
            state->granted = true;
            state->intent = false;
            state->source.reset();
            note_answer(owner_, *claim_, sent_on);
        }
        done_(create_outcome::granted(owner_.config().plain() ? 0 : static_cast<std::uint64_t>(fence)));
    }

    client& owner_;
    const claim_ptr claim_;
    completion<create_outcome> done_;
    failure_ptr problem_;
    /// How long the writer's intent lasts.
    lease_clock::duration writer_{};
    step step_;
    bool anchored_ = false;
};

/// Release and abandon: they differ in what they promise.
class give_back_operation final : public script_operation
{
public:
    enum class promise : unsigned char
    {
        released,
        /// And nothing that is still on its way will change that.
        for_good,
    };

    give_back_operation(client& owner, claim_ptr claim, completion<release_outcome> done, promise given)
        : script_operation(owner), claim_(std::move(claim)), done_(std::move(done)), promise_(given)
    {
        deadline = deadline_of(*claim_, owner);
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        const auto& all = scripts::get();
        const auto& key = lock_key(config(), claim_->key());
        const auto* const state = find_state(*claim_);
        if (claim_->mode() == lock_mode::shared)
            all.release_shared.push(
                request, form, 2, key, config().probe_key, value_of(config(), *claim_), claim_->ttl().count());
        else if (state && state->intent && !config().plain())
            all.withdraw.push(
                request, form, 3, key, config().probe_key, intent_key(config(), claim_->key()), token_of(*claim_));
        else
            all.release.push(request, form, 2, key, config().probe_key, token_of(*claim_));
    }

    [[nodiscard]] joint_script* join(joint_scripts& of) override
    {
        const auto* const state = find_state(*claim_);
        if (claim_->mode() == lock_mode::shared || (state && state->intent && !config().plain()))
            return nullptr;
        of.releases.add(form(), config().prefix, claim_->key(), token_of(*claim_));
        return &of.releases;
    }

    void answered(operation_ptr) override
    {
        const reply& answer = replies[0];
        if (!answer.is(reply::kind::number)) {
            done_({release_status::failed, refusal(answer)});
            return;
        }
        if (auto* const state = find_state(*claim_)) {
            note_answer(owner_, *claim_, sent_on);
            state->granted = false;
            state->intent = false;
            if (promise_ == promise::for_good && !state->creates.empty()) {
                done_({release_status::failed, in_doubt()});
                return;
            }
            state->source.reset();
        }
        const bool others = answer.number > 1 && answer.number - 1 > owner_.listens(lock_key(config(), claim_->key()));
        done_({answer.number >= 1 ? release_status::released : release_status::not_held, nullptr, others});
    }

    void failed(delivery, failure_ptr why) override { done_({release_status::failed, std::move(why)}); }

    const claim_ptr claim_;
    completion<release_outcome> done_;
    const promise promise_;
};

class extend_operation final : public script_operation
{
public:
    extend_operation(client& owner, claim_ptr claim, milliseconds ttl, completion<extend_outcome> done)
        : script_operation(owner), claim_(std::move(claim)), ttl_(ttl), done_(std::move(done))
    {
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        const auto& key = lock_key(config(), claim_->key());
        if (claim_->mode() == lock_mode::shared)
            scripts::get().extend_shared.push(
                request, form, 2, key, config().probe_key, value_of(config(), *claim_), ttl_.count());
        else
            scripts::get().extend.push(request, form, 2, key, config().probe_key, token_of(*claim_), ttl_.count());
    }
    void answered(operation_ptr) override
    {
        note_answer(owner_, *claim_, sent_on);
        if (replies[0].is(reply::kind::number))
            done_({replies[0].number == 1 ? extend_status::extended : extend_status::not_held, nullptr});
        else
            done_({extend_status::failed, refusal(replies[0])});
    }
    void failed(delivery how, failure_ptr why) override
    {
        if (how == delivery::unanswered) {
            auto& state = state_of(*claim_);
            state.granted = true;
            state.extends.add(sent_on);
        }
        done_({extend_status::failed, std::move(why)});
    }

    const claim_ptr claim_;
    const milliseconds ttl_;
    completion<extend_outcome> done_;
};

class valid_operation final : public script_operation
{
public:
    valid_operation(client& owner, claim_ptr claim, completion<valid_outcome> done)
        : script_operation(owner), claim_(std::move(claim)), done_(std::move(done))
    {
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        const auto& key = lock_key(config(), claim_->key());
        if (claim_->mode() == lock_mode::shared)
            scripts::get().valid_shared.push(request, form, 2, key, config().probe_key, value_of(config(), *claim_));
        else
            scripts::get().valid.push(request, form, 2, key, config().probe_key, token_of(*claim_));
    }
    void answered(operation_ptr) override
    {
        if (replies[0].is(reply::kind::number))
            done_({replies[0].number == 1, nullptr});
        else
            done_({false, refusal(replies[0])});
    }
    void failed(delivery, failure_ptr why) override { done_({false, std::move(why)}); }

    const claim_ptr claim_;
    completion<valid_outcome> done_;
};

/// A held lock goes to the next claim in one step. Where the server refuses that, it goes the long way.
class hand_over_operation final : public script_operation
{
public:
    using long_way = void (*)(adapter&, claim_ptr, claim_ptr, completion<hand_over_outcome>);

    hand_over_operation(client& owner, std::shared_ptr<adapter> backend, long_way fallback, claim_ptr held,
        claim_ptr next, completion<hand_over_outcome> done)
        : script_operation(owner), backend_(std::move(backend)), fallback_(fallback), held_(std::move(held)),
          next_(std::move(next)), done_(std::move(done))
    {
    }

private:
    [[nodiscard]] joint_script* join(joint_scripts& of) override
    {
        anchored_ = owner_.anchor_due(deadline - config().operation_timeout);
        if (anchored_)
            return nullptr;
        // Both tokens are written into the same place.
        const auto held = token_of(*held_);
        of.hand_overs.add(form(), config().prefix, next_->key(), held, value_of(config(), *next_),
            std::to_string(next_->ttl().count()));
        return &of.hand_overs;
    }

    void push(boost::redis::request& request, script::form form) override
    {
        if (anchored_)
            owner_.push_anchor(request, script::form::whole);
        const auto held = token_of(*held_);
        scripts::get().hand_over.push(request, form, 2, lock_key(config(), next_->key()), config().fence_key, held,
            value_of(config(), *next_), next_->ttl().count());
    }

    void answered(operation_ptr) override
    {
        const reply& whole = replies[anchored_ ? 1 : 0];
        const reply& answer = whole.is(reply::kind::array) ? whole.at(0) : whole;
        if (!answer.is(reply::kind::number)) {
            held_->set_sent(lease_clock::now());
            fallback_(*backend_, std::move(held_), std::move(next_), std::move(done_));
            return;
        }
        const bool ours = answer.number != 0;
        if (auto* const state = find_state(*held_))
            state->granted = false;
        if (ours && answer.number >= least_fence) {
            owner_.saw_fence(answer.number);
            if (auto* const state = find_state(*next_)) {
                state->granted = true;
                state->source.reset();
                note_answer(owner_, *next_, sent_on);
            }
            done_({{}, create_outcome::granted(static_cast<std::uint64_t>(answer.number))});
            return;
        }
        const release_outcome released{ours ? release_status::released : release_status::not_held, nullptr};
        auto created = [released, done = std::move(done_)](
                           create_outcome outcome) mutable { done({released, std::move(outcome)}); };
        owner_.submit(std::make_unique<create_operation>(owner_, std::move(next_), std::move(created),
            ours ? create_operation::step::lift_fence : create_operation::step::by_script));
    }

    void failed(delivery how, failure_ptr why) override
    {
        if (how == delivery::unanswered)
            state_of(*next_).creates.add(sent_on);
        done_({{release_status::failed, why}, create_outcome::failed(why)});
    }

    const std::shared_ptr<adapter> backend_;
    const long_way fallback_;
    claim_ptr held_;
    claim_ptr next_;
    completion<hand_over_outcome> done_;
    bool anchored_ = false;
};

/// Turns {key, 'x' or 's', value, remaining} into a status.
std::optional<lock_status> status_from(const settings& config, const reply& row)
{
    if (row.items.size() != 4 || !row.at(0).text.starts_with(config.prefix))
        return std::nullopt;
    lock_status status;
    status.key = row.at(0).text.substr(config.prefix.size());
    if (row.at(3).number >= 0)
        status.remaining = milliseconds(row.at(3).number);
    // Another library's token may begin with any letter, and be of any length.
    if (config.plain())
        return status;
    status.mode = row.at(1).text == "s" ? lock_mode::shared : lock_mode::exclusive;
    const std::size_t before_owner = 2 * token::size + (status.mode == lock_mode::shared ? 1 : 0);
    const std::string_view value = row.at(2).text;
    if (auto known =
            value.size() > before_owner ? remote::parse_stored_owner(value.substr(before_owner)) : std::nullopt)
        remote::fill(status, std::move(*known));
    return status;
}

/// Takes the rows of one answer; returns why it could not.
failure_ptr add_rows(const settings& config, const reply& answer, const filter& which, std::vector<lock_status>& to)
{
    if (!answer.is(reply::kind::array))
        return refusal(answer);
    for (const auto& row : answer.items) {
        if (auto status = status_from(config, row); status && which.matches(*status))
            to.push_back(std::move(*status));
    }
    return nullptr;
}

/// What is done with the holders of one key.
class key_operation final : public script_operation
{
public:
    enum class purpose : unsigned char
    {
        inspect,
        remove,
    };

    key_operation(client& owner, std::string key, purpose why, filter which, completion<list_outcome> done)
        : script_operation(owner), key_(std::move(key)), purpose_(why), which_(std::move(which)), done_(std::move(done))
    {
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        const auto& key = lock_key(config(), key_);
        if (purpose_ == purpose::inspect)
            scripts::get().inspect.push(request, form, 2, config().probe_key, key);
        else
            scripts::get().break_key.push(request, form, 3, key, config().probe_key,
                config().plain() ? config().probe_key : intent_key(config(), key_));
    }
    void answered(operation_ptr) override
    {
        list_outcome outcome;
        outcome.error = add_rows(config(), replies[0], which_, outcome.locks);
        done_(std::move(outcome));
    }
    void failed(delivery, failure_ptr why) override { done_({{}, std::move(why)}); }

    const std::string key_;
    const purpose purpose_;
    const filter which_;
    completion<list_outcome> done_;
};

std::string glob_escaped(std::string_view text)
{
    std::string escaped;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^')
            escaped += '\\';
        escaped += c;
    }
    return escaped;
}

/// Walks all keys of the prefix, page by page, and lists or sweeps them.
class walk_operation final : public script_operation
{
public:
    enum class purpose : unsigned char
    {
        list,
        sweep,
    };

    walk_operation(client& owner, purpose why, filter which, std::size_t limit, completion<list_outcome> done)
        : script_operation(owner), purpose_(why), which_(std::move(which)), limit_(limit),
          pattern_(glob_escaped(config().prefix + which_.key_prefix.value_or("")) + '*'), done_(std::move(done))
    {
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        if (batch_.empty()) {
            if (purpose_ == purpose::list)
                request.push("SCAN", cursor_, "MATCH", pattern_, "COUNT", scan_count);
            else
                request.push("SCAN", cursor_, "MATCH", pattern_, "COUNT", scan_count, "TYPE", "zset");
            return;
        }
        const auto& used = purpose_ == purpose::list ? scripts::get().inspect : scripts::get().sweep;
        const auto count = std::to_string(batch_.size() + 1);
        const auto limit = std::to_string(limit_ - found_.locks.size());
        std::vector<std::string_view> words;
        if (form == script::form::digest)
            words = {"EVALSHA", used.digest(), count, config().probe_key};
        else
            words = {"EVAL", used.text(), count, config().probe_key};
        words.insert(words.end(), batch_.begin(), batch_.end());
        if (purpose_ == purpose::sweep)
            words.push_back(limit);
        request.push_range(words.front(), words.begin() + 1, words.end());
    }

    void answered(operation_ptr self) override
    {
        const reply& answer = replies[0];
        if (!batch_.empty()) {
            found_.error = add_rows(config(), answer, which_, found_.locks);
            batch_.clear();
        } else if (!answer.is(reply::kind::array) || answer.items.size() != 2) {
            found_.error = refusal(answer);
        } else {
            cursor_ = answer.at(0).text;
            last_page_ = cursor_ == "0";
            // A key may be told twice.
            for (const auto& key : answer.at(1).items) {
                if (seen_.insert(key.text).second)
                    page_.push_back(key.text);
            }
        }
        const bool full = limit_ != 0 && found_.locks.size() >= limit_;
        if (found_.error || full || (page_.empty() && last_page_)) {
            done_(std::move(found_));
            return;
        }
        const auto taken = std::min(page_.size(), keys_per_script);
        batch_.assign(std::make_move_iterator(page_.end() - static_cast<std::ptrdiff_t>(taken)),
            std::make_move_iterator(page_.end()));
        page_.resize(page_.size() - taken);
        // Each page has the whole time: how many there are is nobody's fault.
        deadline = {};
        resubmit(std::move(self));
    }
    void failed(delivery, failure_ptr why) override { done_({{}, std::move(why)}); }

    const purpose purpose_;
    const filter which_;
    const std::size_t limit_;
    const std::string pattern_;
    completion<list_outcome> done_;
    std::string cursor_ = "0";
    bool last_page_ = false;
    std::set<std::string> seen_;
    std::vector<std::string> page_;
    std::vector<std::string> batch_;
    list_outcome found_;
};

} // namespace

class redis_adapter final : public adapter, public client_events
{
public:
    explicit redis_adapter(asio::any_io_executor executor) : adapter(std::move(executor)) {}
    ~redis_adapter() override
    {
        if (client_)
            client_->retire();
    }

    static std::shared_ptr<redis_adapter> make(const asio::any_io_executor& executor, settings checked)
    {
        auto made = std::make_shared<redis_adapter>(executor);
        made->client_ = client::make(executor, std::move(checked), made);
        return made;
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "redis"; }

    [[nodiscard]] colock::capabilities capabilities() const noexcept override
    {
        const bool standard = !config().plain();
        return {.shared = standard,
            .semaphore = standard,
            .no_ttl = true,
            .fifo = false,
            .fence = standard,
            .list = true,
            .events = true,
            .immediate = false};
    }

    [[nodiscard]] adapter_limits limits() const noexcept override
    {
        adapter_limits all;
        all.answers_within = config().operation_timeout;
        return all;
    }

    void start_create(claim_ptr claim, completion<create_outcome> done) override
    {
        using step = create_operation::step;
        if (claim->inherited()) {
            done(create_outcome::failed(make_failure(errc::forked)));
            return;
        }
        // A token that cannot be made is the caller's to hear of; the request is written where nobody could be told.
        static_cast<void>(claim->token());
        auto first = step::short_way;
        if (auto* const state = find_state(*claim)) {
            // A second attempt: busy is as likely as not, and the script tells at once how long.
            first = step::by_script;
            if (state->source)
                state->source->look();
        } else if (claim->mode() == lock_mode::shared) {
            // The name that a reader is stored under is made once.
            static_cast<void>(state_of(*claim));
            // To take the lock and to give it back for a writer costs the writer more than a script costs us.
            if (client_->writers().may_wait(*claim))
                first = step::by_script;
        }
        client_->submit(std::make_unique<create_operation>(*client_, std::move(claim), std::move(done), first));
    }

    void start_release(claim_ptr claim, completion<release_outcome> done) override
    {
        if (claim->inherited()) {
            done({release_status::not_held, nullptr});
            return;
        }
        client_->submit(std::make_unique<give_back_operation>(
            *client_, std::move(claim), std::move(done), give_back_operation::promise::released));
    }

    void start_abandon(claim_ptr claim, completion<release_outcome> done) override
    {
        if (claim->inherited()) {
            done({release_status::not_held, nullptr});
            return;
        }
        if (auto* const state = find_state(*claim)) {
            state->source.reset();
            if (!state->granted && !state->intent && state->creates.empty()) {
                done({release_status::not_held, nullptr});
                return;
            }
        }
        client_->submit(std::make_unique<give_back_operation>(
            *client_, std::move(claim), std::move(done), give_back_operation::promise::for_good));
    }

    void start_extend(claim_ptr claim, milliseconds ttl, completion<extend_outcome> done) override
    {
        if (claim->inherited()) {
            done({extend_status::not_held, nullptr});
            return;
        }
        client_->submit(std::make_unique<extend_operation>(*client_, std::move(claim), ttl, std::move(done)));
    }

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        if (claim->inherited()) {
            done({false, nullptr});
            return;
        }
        client_->submit(std::make_unique<valid_operation>(*client_, std::move(claim), std::move(done)));
    }

    void start_wait(claim_ptr claim, lease_clock::time_point, completion<woken> done) override
    {
        if (claim->inherited()) {
            done(woken{});
            return;
        }
        auto& state = state_of(*claim);
        if (!state.source)
            state.source.emplace(client_->watch(lock_key(config(), claim->key())));
        if (!state.source->wait(*claim, done))
            done(woken{});
    }

    void cancel_wait(claim& claim) noexcept override
    {
        if (const auto* const state = find_state(claim); state && state->source)
            state->source->cancel_wait(claim);
    }

    void start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done) override
    {
        const auto* const state = find_state(*next);
        const bool simple = held->mode() == lock_mode::exclusive && next->mode() == lock_mode::exclusive &&
                            held->key() == next->key() && !held->tainted() && !held->inherited() &&
                            !next->inherited() && !(state && state->intent);
        if (config().plain() || !simple) {
            adapter::start_hand_over(std::move(held), std::move(next), std::move(done));
            return;
        }
        const auto long_way = [](adapter& self, claim_ptr from, claim_ptr to, completion<hand_over_outcome> end) {
            static_cast<redis_adapter&>(self).adapter::start_hand_over(std::move(from), std::move(to), std::move(end));
        };
        client_->submit(std::make_unique<hand_over_operation>(
            *client_, shared_from_this(), long_way, std::move(held), std::move(next), std::move(done)));
    }

    void start_inspect(std::string key, completion<list_outcome> done) override
    {
        client_->submit(std::make_unique<key_operation>(
            *client_, std::move(key), key_operation::purpose::inspect, filter{}, std::move(done)));
    }

    void start_break(std::string key, completion<list_outcome> done) override
    {
        client_->submit(std::make_unique<key_operation>(
            *client_, std::move(key), key_operation::purpose::remove, filter{}, std::move(done)));
    }

    void start_list(filter which, std::string, completion<list_outcome> done) override
    {
        if (which.key) {
            auto key = *which.key;
            client_->submit(std::make_unique<key_operation>(
                *client_, std::move(key), key_operation::purpose::inspect, std::move(which), std::move(done)));
        } else if (!refuses_walk(done)) {
            client_->submit(std::make_unique<walk_operation>(
                *client_, walk_operation::purpose::list, std::move(which), 0, std::move(done)));
        }
    }

    void start_purge(std::size_t limit, completion<list_outcome> done) override
    {
        constexpr std::size_t all = 1'000'000'000;
        if (config().plain())
            done({});
        else
            client_->submit(std::make_unique<walk_operation>(
                *client_, walk_operation::purpose::sweep, filter{}, limit == 0 ? all : limit, std::move(done)));
    }

    void start_close(lease_clock::duration deadline, completion<closed> done) override
    {
        client_->close(deadline, std::move(done));
    }

    void on_ready() noexcept override { notify_ready(); }
    void on_unreachable(const failure_ptr& why, std::string_view address) noexcept override
    {
        notify_unreachable(why, address);
    }
    void on_suspended(const error_code& why) noexcept override { notify_suspended(why); }
    void on_reconnected() noexcept override { notify_reconnected(); }
    void on_warning(std::string_view message) noexcept override { notify_warning(message); }

private:
    [[nodiscard]] const settings& config() const noexcept { return client_->config(); }

    /// Without a prefix every key of the database could be a lock.
    [[nodiscard]] bool refuses_walk(completion<list_outcome>& done) const
    {
        if (!config().prefix.empty())
            return false;
        done({{}, make_failure(errc::unsupported, "listing needs a prefix; set options::prefix, or ask for one key")});
        return true;
    }

    std::shared_ptr<client> client_;
};

} // namespace detail

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings)
{
    return detail::redis_adapter::make(executor, detail::settings(settings));
}

} // namespace colock::redis
