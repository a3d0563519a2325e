// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/awaitable_adapter.hpp>

#include <boost/asio/co_spawn.hpp>

#include <exception>

namespace colock {

namespace {

failure_ptr describe(const std::exception_ptr& exception)
{
    try {
        std::rethrow_exception(exception);
    } catch (const boost::system::system_error& thrown) {
        if (thrown.code().category() == colock_category())
            return make_failure(static_cast<errc>(thrown.code().value()));
        return make_failure(errc::outcome_unknown, {}, thrown.code());
    } catch (const std::exception& thrown) {
        return make_failure(errc::outcome_unknown, thrown.what());
    } catch (...) {
        return make_failure(errc::outcome_unknown);
    }
}

template <class Outcome, class Failed>
void spawn(const adapter& owner, asio::awaitable<Outcome> operation, completion<Outcome> done, Failed failed)
{
    const auto executor = owner.executor();
    // The context is gone, and with it everybody who could be told.
    if (!executor)
        return;
    asio::co_spawn(executor, std::move(operation),
        [done = std::move(done), failed](const std::exception_ptr& exception, Outcome outcome) mutable {
            done(exception ? failed(describe(exception)) : std::move(outcome));
        });
}

release_outcome release_failed(failure_ptr error)
{
    return {release_status::failed, std::move(error)};
}

} // namespace

void awaitable_adapter::start_create(claim_ptr claim, completion<create_outcome> done)
{
    spawn(*this, do_create(std::move(claim)), std::move(done), &create_outcome::failed);
}

void awaitable_adapter::start_release(claim_ptr claim, completion<release_outcome> done)
{
    spawn(*this, do_release(std::move(claim)), std::move(done), &release_failed);
}

void awaitable_adapter::start_abandon(claim_ptr claim, completion<release_outcome> done)
{
    spawn(*this, do_abandon(std::move(claim)), std::move(done), &release_failed);
}

void awaitable_adapter::start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    spawn(*this, do_extend(std::move(claim), ttl), std::move(done),
        [](failure_ptr error) { return extend_outcome{extend_status::failed, std::move(error)}; });
}

void awaitable_adapter::start_is_valid(claim_ptr claim, completion<valid_outcome> done)
{
    spawn(*this, do_is_valid(std::move(claim)), std::move(done),
        [](failure_ptr error) { return valid_outcome{false, std::move(error)}; });
}

asio::awaitable<release_outcome> awaitable_adapter::do_abandon(claim_ptr claim)
{
    return do_release(std::move(claim));
}

} // namespace colock
