// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "seats.hpp"

#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace http = boost::beast::http;
using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

inline response make_response(http::status status, std::string text)
{
    response result(status, 11);
    result.set(http::field::content_type, "text/plain");
    result.body() = std::move(text) + '\n';
    return result;
}

/// Handles `POST /reserve/{seat}`. Every other request is answered with an error.
class desk
{
public:
    desk(colock::locker locker, const seats& hall, std::chrono::milliseconds limit)
        : locker_(std::move(locker)), hall_(hall), limit_(limit)
    {
    }

    asio::awaitable<response> answer(const request& received) const
    {
        static constexpr std::string_view path = "/reserve/";
        const std::string_view target = received.target();
        if (!target.starts_with(path))
            co_return make_response(http::status::not_found, "there is only /reserve/{seat}");
        if (received.method() != http::verb::post) {
            response refusal = make_response(http::status::method_not_allowed, "a reservation is a POST");
            refusal.set(http::field::allow, "POST");
            co_return refusal;
        }
        const std::string seat(target.substr(path.size()));
        if (!is_seat(seat))
            co_return make_response(http::status::bad_request, "a seat is a letter, A to Z, and one to three digits");
        co_return co_await reserve(seat);
    }

private:
    static bool is_seat(std::string_view name)
    {
        return name.size() >= 2 && name.size() <= 4 && name[0] >= 'A' && name[0] <= 'Z' &&
               std::all_of(name.begin() + 1, name.end(), [](char each) { return each >= '0' && each <= '9'; });
    }

    asio::awaitable<response> reserve(std::string seat) const
    {
        // The wait ends at the limit in all cases. With a deadline of the retry policy, the error says whether the lock
        // is busy or the backend does not answer. A deadline of Asio would only report a cancellation.
        const auto patience = colock::within(limit_);
        auto [failed, lock] = co_await locker_.async_acquire(
            "seat:" + seat, {.retry = patience, .renewal = colock::renewal::automatic}, asio::as_tuple(asio::deferred));
        if (failed == colock::errc::retry_exhausted)
            co_return try_later("busy: somebody else is reserving " + seat);
        if (failed)
            co_return try_later("unavailable: the lock service reports " + failed.message());

        switch (co_await hall_.reserve(seat, lock)) {
        case sale::done:
            co_return make_response(http::status::ok, seat + " is yours");
        case sale::taken:
            co_return make_response(http::status::conflict, seat + " is taken");
        case sale::stopped:
            break;
        }
        co_return try_later("the reservation was not finished");
        // The lock is destroyed here and released in the background, so that a slow backend does not delay the answer.
    }

    static response try_later(std::string reason)
    {
        response refusal = make_response(http::status::service_unavailable, std::move(reason));
        refusal.set(http::field::retry_after, "1");
        return refusal;
    }

    colock::locker locker_;
    const seats& hall_;
    std::chrono::milliseconds limit_;
};
