// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/completion.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Awaits an operation that `start` begins with a completion. Resumes on the caller's executor, never inside the call
/// of the completion.
template <class Outcome, class Start>
asio::awaitable<Outcome> await_completion(Start start)
{
    co_return co_await asio::async_initiate<const asio::deferred_t, void(Outcome)>(
        [](auto handler, Start begin) {
            asio::any_io_executor executor = asio::get_associated_executor(handler);
            auto work = asio::prefer(executor, asio::execution::outstanding_work.tracked);
            begin(completion<Outcome>([waiting = asio::any_completion_handler<void(Outcome)>(std::move(handler)),
                                          work = std::move(work)](Outcome outcome) mutable {
                asio::post(work, asio::append(std::move(waiting), std::move(outcome)));
            }));
        },
        asio::deferred, std::move(start));
}

} // namespace colock::inline v0::detail
