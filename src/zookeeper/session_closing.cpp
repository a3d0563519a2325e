// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session_runtime.hpp"

#include <boost/asio/post.hpp>
#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using boost::endian::native_to_big;

constexpr std::int32_t close_session = -11;
/// The driver's own begin with the seconds of the year 1970 and go up.
constexpr std::int32_t close_number = 0x7ffffffe;

template <class Number>
std::span<std::byte> put_number(std::span<std::byte> into, Number number)
{
    const auto big = native_to_big(number);
    std::memcpy(into.data(), &big, sizeof big);
    return into.subspan(sizeof big);
}

/// As the driver would write it; but it would then wait for the answer, and block.
std::array<std::byte, 12> closing_request()
{
    std::array<std::byte, 12> bytes{};
    auto rest = put_number(std::span(bytes), std::int32_t{8});
    rest = put_number(rest, close_number);
    put_number(rest, close_session);
    return bytes;
}

/// Its answer ends what the server sends. Between them is the number of a transaction.
bool is_closing_answer(std::span<const std::byte, 20> tail)
{
    std::array<std::byte, 8> head{};
    put_number(put_number(std::span(head), std::int32_t{16}), close_number);
    constexpr std::array<std::byte, 4> success{};
    return std::ranges::equal(tail.first<8>(), head) && std::ranges::equal(tail.last<4>(), success);
}

} // namespace

void session::close(lease_clock::duration deadline, completion<bool> done)
{
    if (!runtime_ || phase_ == phase::over || phase_ == phase::closing) {
        done(phase_ == phase::over);
        return;
    }
    const bool can_ask = connected() && !handle_->has_hung_up();
    runtime_->closed = std::move(done);
    // Without a session there is nothing to be closed.
    const bool has_none = id_ == 0;
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
    asio::post(runtime_->strand, [self = shared_from_this()] { self->flush(); });
}

/// What the driver has not written yet, half of a request perhaps, goes first.
void session::flush()
{
    if (!runtime_ || phase_ != phase::closing || !handle_)
        return;
    auto& run = *runtime_;
    if (std::exchange(run.corked, false))
        run.socket.cork(false);
    if (handle_->process(false, true) == handle::progress::failed) {
        end_close(false);
        return;
    }
    const auto wanted = handle_->wants();
    if (wanted.failed || wanted.descriptor == -1 || handle_->now() != handle::phase::connected) {
        end_close(false);
        return;
    }
    if (wanted.wants_write) {
        listen(true);
        return;
    }
    if (run.socket.put(closing_request()))
        read_rest();
    else
        end_close(false);
}

void session::read_rest()
{
    if (!runtime_ || phase_ != phase::closing || !handle_)
        return;
    auto& run = *runtime_;
    std::array<std::byte, 4096> room;
    for (;;) {
        const auto got = run.socket.take(room);
        if (!got) {
            listen(false);
            return;
        }
        if (got->empty()) {
            end_close(is_closing_answer(run.tail));
            return;
        }
        // The last bytes of what was there and what has come.
        const auto fresh = got->last(std::min(got->size(), run.tail.size()));
        std::ranges::rotate(run.tail, run.tail.begin() + static_cast<std::ptrdiff_t>(fresh.size()));
        std::ranges::copy(fresh, run.tail.end() - static_cast<std::ptrdiff_t>(fresh.size()));
    }
}

void session::end_close(bool proven)
{
    const auto self = shared_from_this();
    runtime_->proven = proven;
    let_go();
    tell();
}

void session::abandon()
{
    if (!runtime_ || phase_ == phase::over)
        return;
    const auto self = shared_from_this();
    let_go();
    if (!told_.empty())
        post_step();
}

void session::end(news why)
{
    announced_.push_back(why);
    let_go();
    post_step();
}

void session::let_go() noexcept
{
    phase_ = phase::over;
    seen_ = handle::phase::disconnected;
    heart_.lost();
    if (runtime_) {
        runtime_->turns.cancel();
        runtime_->retry.cancel();
        runtime_->closer.cancel();
        runtime_->names.cancel();
        // On a connection that stands the driver would wait for an answer.
        runtime_->socket.cut();
        runtime_->socket.drop();
    }
    if (handle_) {
        handle_->close();
        auto rest = handle_->take_told();
        told_.splice(told_.end(), rest);
        handle_.reset();
    }
    if (bound_)
        bound_->end();
}

void session::drop_told() noexcept
{
    told_.clear_and_dispose(std::default_delete<told>());
}

void session::context_shutdown() noexcept
{
    const auto self = shared_from_this();
    let_go();
    drop_told();
    runtime_.reset();
}

void session::context_forked() noexcept
{
    if (!runtime_ || phase_ == phase::over)
        return;
    // The parent's: nothing more may be sent on it, nor may it be shut down.
    if (runtime_->socket.open())
        socket_watch::disown(runtime_->socket.drivers());
    runtime_->socket.drop();
    let_go();
    if (!told_.empty())
        post_step();
}

} // namespace colock::zookeeper::detail
