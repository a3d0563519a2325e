// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/login.hpp"

#include <colock/token.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

namespace {

constexpr const char* sha1_name = "SCRAM-SHA-1";
constexpr const char* sha256_name = "SCRAM-SHA-256";
/// About a millisecond.
constexpr int rounds_at_a_time = 500;

answer refusal(std::string why)
{
    return {.what = answer::kind::refused, .code = authentication_failed, .why = std::move(why), .spoils = true};
}

/// The connection is not logged in, so nothing was sent on it.
answer not_logged_in(answer failed)
{
    if (failed.what == answer::kind::unknown)
        failed.what = answer::kind::unsent;
    failed.spoils = true;
    return failed;
}

answer aborted()
{
    return {.what = answer::kind::unsent, .why = "it was given up before it was logged in", .spoils = true};
}

bool is_printable_ascii(std::string_view text)
{
    return std::ranges::all_of(text, [](char each) { return each >= ' ' && each <= '~'; });
}

document hello_of(const credentials& who)
{
    document made;
    BSON_APPEND_INT32(made.get(), "hello", 1);
    BSON_APPEND_UTF8(made.get(), "saslSupportedMechs", (who.source + '.' + who.user).c_str());
    return made;
}

void append_payload(document& to, std::string_view payload)
{
    BSON_APPEND_BINARY(to.get(), "payload", BSON_SUBTYPE_BINARY, reinterpret_cast<const std::uint8_t*>(payload.data()),
        static_cast<std::uint32_t>(payload.size()));
}

document start(const char* mechanism, std::string_view payload)
{
    document made;
    BSON_APPEND_INT32(made.get(), "saslStart", 1);
    BSON_APPEND_UTF8(made.get(), "mechanism", mechanism);
    append_payload(made, payload);
    BSON_APPEND_INT32(made.get(), "autoAuthorize", 1);
    document options;
    BSON_APPEND_BOOL(options.get(), "skipEmptyExchange", true);
    BSON_APPEND_DOCUMENT(made.get(), "options", options.get());
    return made;
}

document go_on(std::int32_t conversation, std::string_view payload)
{
    document made;
    BSON_APPEND_INT32(made.get(), "saslContinue", 1);
    BSON_APPEND_INT32(made.get(), "conversationId", conversation);
    append_payload(made, payload);
    return made;
}

/// What a server says in a conversation.
struct step
{
    step() = default;
    explicit step(const document& reply)
    {
        bson_iter_t at;
        if (bson_iter_init_find(&at, reply.get(), "conversationId") && BSON_ITER_HOLDS_INT32(&at))
            conversation = bson_iter_int32(&at);
        if (bson_iter_init_find(&at, reply.get(), "done"))
            done = bson_iter_as_bool(&at);
        if (bson_iter_init_find(&at, reply.get(), "payload") && BSON_ITER_HOLDS_BINARY(&at)) {
            const std::uint8_t* data = nullptr;
            std::uint32_t size = 0;
            bson_iter_binary(&at, nullptr, &size, &data);
            payload.assign(reinterpret_cast<const char*>(data), size);
        }
    }

    std::int32_t conversation = 0;
    bool done = false;
    std::string payload;
};

/// A server that does not know the user names none; the driver asks it for SHA-1 then.
const char* best_of(const document& reply)
{
    bson_iter_t at;
    bson_iter_t each;
    if (!bson_iter_init_find(&at, reply.get(), "saslSupportedMechs") || !bson_iter_recurse(&at, &each))
        return sha1_name;
    while (bson_iter_next(&each)) {
        if (BSON_ITER_HOLDS_UTF8(&each) && std::string_view(bson_iter_utf8(&each, nullptr)) == sha256_name)
            return sha256_name;
    }
    return sha1_name;
}

} // namespace

/// A password that is being hashed, or was; goes on as long as somebody waits for it.
struct login::hashing : std::enable_shared_from_this<hashing>
{
    hashing(salting asked, const credentials& of) : how(std::move(asked)), who(of) {}

    /// On a fiber. False: it aborts.
    [[nodiscard]] bool wait(fiber_host& on)
    {
        const auto waker = std::make_shared<std::function<void()>>(on.waker());
        waiting.push_back(waker);
        if (!under_way)
            post_next(on.strand());
        while (under_way && !on.aborts())
            on.suspend_until(lease_clock::time_point::max());
        return !under_way;
    }
    [[nodiscard]] bool finished() const noexcept { return work && work->finished(); }

    void post_next(const asio::any_io_executor& strand)
    {
        under_way = true;
        asio::post(strand, [self = shared_from_this(), strand] { self->advance(strand); });
    }
    void advance(const asio::any_io_executor& strand)
    {
        std::erase_if(waiting, [](const auto& each) { return each.expired(); });
        try {
            if (!work)
                work.emplace(
                    how, how.by == scram_hash::sha1 ? digested_password(who.user, who.password) : who.password);
            if (!waiting.empty() && !work->advance(rounds_at_a_time)) {
                post_next(strand);
                return;
            }
        } catch (const std::exception& without) {
            failure = without.what();
        }
        under_way = false;
        for (const auto& each : std::exchange(waiting, {})) {
            if (const auto wake = each.lock())
                (*wake)();
        }
    }

    /// Outside of any fiber, when it is finished.
    void use(scram& conversation, std::string& proof)
    {
        try {
            proof = conversation.last(work->key());
        } catch (const std::exception& without) {
            failure = without.what();
        }
    }

    const salting how;
    const credentials who;
    std::optional<salted_password> work;
    std::string failure;
    bool under_way = false;
    std::vector<std::weak_ptr<std::function<void()>>> waiting;
};

/// One connection that is being logged in.
class login::attempt
{
public:
    attempt(login& of, mongoc_client_t& driver, fiber_host& on) : of_(of), driver_(driver), on_(on) {}

    /// Why not, or nothing.
    using failure = std::optional<answer>;

    failure run()
    {
        if (auto failed = choose())
            return failed;
        if (mechanism_ == sha256_name && !is_printable_ascii(of_.who_.password))
            return refusal("SCRAM-SHA-256 is done here for passwords of printable ASCII alone");
        return converse(std::make_shared<scram>(hash(), of_.who_.user, token::generate().hex()));
    }

private:
    failure choose()
    {
        mechanism_ = of_.who_.mechanism.empty() ? of_.negotiated_ : of_.who_.mechanism;
        if (mechanism_.empty()) {
            auto got = ask(driver_, of_.who_.source, hello_of(of_.who_));
            if (got.what != answer::kind::done)
                return not_logged_in(std::move(got));
            mechanism_ = of_.negotiated_ = best_of(got.reply);
        }
        if (mechanism_ != sha1_name && mechanism_ != sha256_name)
            return refusal("there is no mechanism " + mechanism_ + " here");
        return std::nullopt;
    }
    [[nodiscard]] scram_hash hash() const { return mechanism_ == sha1_name ? scram_hash::sha1 : scram_hash::sha256; }

    failure converse(const std::shared_ptr<scram>& conversation)
    {
        if (auto failed = say(start(mechanism_.c_str(), conversation->first())))
            return failed;
        if (!conversation->take_first(heard_.payload))
            return refusal(conversation->why());
        const auto proof = std::make_shared<std::string>();
        if (auto failed = prove(conversation, proof))
            return failed;
        if (auto failed = say(go_on(heard_.conversation, *proof)))
            return failed;
        if (!conversation->take_last(heard_.payload))
            return refusal(conversation->why());
        // A server that does not know that this can be left out.
        if (!heard_.done) {
            if (auto failed = say(go_on(heard_.conversation, "")))
                return failed;
        }
        return heard_.done ? failure() : refusal("the server has still something to ask");
    }

    failure prove(const std::shared_ptr<scram>& conversation, const std::shared_ptr<std::string>& proof)
    {
        const auto password = of_.begin_hashing(conversation->asked());
        if (!password->wait(on_))
            return aborted();
        if (!password->finished())
            return refusal(password->failure);
        if (!run_outside(on_, [conversation, proof, password] { password->use(*conversation, *proof); }))
            return aborted();
        return password->failure.empty() ? failure() : refusal(password->failure);
    }

    failure say(const document& asked)
    {
        auto got = ask(driver_, of_.who_.source, asked);
        if (got.what != answer::kind::done)
            return not_logged_in(std::move(got));
        heard_ = step(got.reply);
        return std::nullopt;
    }

    login& of_;
    mongoc_client_t& driver_;
    fiber_host& on_;
    std::string mechanism_;
    step heard_{};
};

login::login(credentials who) : who_(std::move(who))
{
    // OpenSSL makes its tables when it is first used: here rather than on the event loop.
    static_cast<void>(salted_password({.by = scram_hash::sha256, .salt = {}, .rounds = 1}, {}));
}

login::~login() = default;

std::shared_ptr<login::hashing> login::begin_hashing(const salting& how)
{
    if (!last_ || last_->how != how || !last_->failure.empty()) {
        last_ = std::make_shared<hashing>(how, who_);
        ++hashed_;
    }
    return last_;
}

std::optional<answer> login::perform(mongoc_client_t& driver, fiber_host& on) noexcept
{
    std::optional<answer> failed;
    try {
        failed = attempt(*this, driver, on).run();
    } catch (const std::exception&) {
        failed.emplace(answer{.what = answer::kind::unsent, .spoils = true});
    }
    // Another may be asked for when somebody has changed the user.
    if (failed)
        negotiated_.clear();
    return failed;
}

} // namespace colock::mongo::detail
