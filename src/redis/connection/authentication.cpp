// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/authentication.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/failures.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

using std::chrono::system_clock;
using namespace std::chrono_literals;

constexpr system_clock::duration min_renewal_delay = 1s;
/// Limit of a single wait, so that a change of the system's clock is noticed.
constexpr system_clock::duration max_renewal_delay = 10min;

/// Returns a fifth of the time that is left until `end`.
system_clock::duration fifth_until(system_clock::time_point end, system_clock::time_point now) noexcept
{
    return end <= now ? system_clock::duration::zero() : (end - now) / 5;
}

} // namespace

authentication::authentication(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& reporter)
    : owner_(owner), config_(config), reporter_(reporter), user_(config.location.user),
      password_(config.location.password), timer_(strand)
{
}

void authentication::request(handler done)
{
    done_ = std::move(done);
    const auto number = ++number_;
    const auto self = owner_.keep(*this);
    timer_.expires_after(config_.connect_timeout);
    timer_.async_wait([self, number](const error_code& error) {
        if (!error)
            self->on_result(number, {.error = make_failure(errc::unavailable,
                                         "options::credentials gave no result within connect_timeout")});
    });
    // The program may keep the completion for as long as it likes, so the completion does not keep the client.
    completion<redis::credentials> result = [weak = std::weak_ptr(self), number](redis::credentials given) {
        if (const auto alive = weak.lock())
            alive->owner_.on_strand(*alive, [number, given = std::move(given)](authentication& on_strand) mutable {
                on_strand.on_result(number, std::move(given));
            });
    };
    try {
        config_.credentials(std::move(result));
    } catch (const std::exception& thrown) {
        fail(number, std::string("options::credentials threw: ") + thrown.what());
    } catch (...) {
        fail(number, "options::credentials threw an exception of another type than std::exception");
    }
}

void authentication::fail(std::uint64_t number, const std::string& reason)
{
    owner_.on_strand(*this, [number, failure = make_failure(errc::unavailable, reason)](
                                authentication& on_strand) { on_strand.on_result(number, {.error = failure}); });
}

void authentication::on_result(std::uint64_t number, redis::credentials result)
{
    if (number != number_ || !done_)
        return;
    timer_.cancel();
    const auto done = std::exchange(done_, nullptr);
    if (result.error) {
        const auto& given = *result.error;
        done(given.code == errc::access_denied || given.code == errc::unavailable
                 ? result.error
                 : make_failure(errc::unavailable, given.detail, given.cause));
        return;
    }
    user_ = std::move(result.user);
    password_ = std::move(result.password);
    given_until_ = result.valid_until;
    if (password_.empty())
        done(make_failure(errc::access_denied, "options::credentials gave no password"));
    else
        done(nullptr);
}

void authentication::keep_valid(std::shared_ptr<server_connection> connection)
{
    if (!is_requested())
        return;
    connection_ = std::move(connection);
    on_accepted();
}

void authentication::on_accepted()
{
    valid_until_ = given_until_;
    renew_at_ = system_clock::time_point::max();
    const auto now = system_clock::now();
    if (valid_until_ != system_clock::time_point::max())
        renew_at_ = std::max(valid_until_ - fifth_until(valid_until_, now), now + min_renewal_delay);
    schedule_renewal();
}

void authentication::schedule_renewal()
{
    if (renew_at_ == system_clock::time_point::max())
        return;
    const auto until_renewal = renew_at_ - system_clock::now();
    const bool is_due = until_renewal <= max_renewal_delay;
    timer_.expires_after(
        std::chrono::duration_cast<asio::steady_timer::duration>(is_due ? until_renewal : max_renewal_delay));
    timer_.async_wait([self = owner_.keep(*this), number = ++number_, is_due](const error_code& error) {
        if (error || number != self->number_)
            return;
        if (is_due)
            self->renew();
        else
            self->schedule_renewal();
    });
}

void authentication::renew()
{
    request([this](const failure_ptr& failure) {
        if (failure)
            renewal_failed(failure->detail);
        else
            send_new();
    });
}

void authentication::send_new()
{
    boost::redis::request commands;
    push_auth(commands, user_, password_);
    connection_->exec(
        std::move(commands), [self = owner_.keep(*this), connection = connection_](const reply_list& replies) {
            if (self->connection_ != connection)
                return;
            if (replies[0].is_error())
                return self->renewal_failed(refusal(replies[0])->detail);
            self->on_accepted();
        });
}

/// The connection remains usable until the server closes it, so the renewal is tried again.
void authentication::renewal_failed(const std::string& reason)
{
    reporter_.warn("the credentials of an open connection could not be renewed (" + reason + ")");
    const auto now = system_clock::now();
    renew_at_ = now + std::max(fifth_until(valid_until_, now), min_renewal_delay);
    schedule_renewal();
}

void authentication::stop()
{
    ++number_;
    done_ = nullptr;
    connection_ = nullptr;
    timer_.cancel();
}

} // namespace colock::inline v0::redis::detail
