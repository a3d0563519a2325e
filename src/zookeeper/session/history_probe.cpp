// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/history_probe.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

std::shared_ptr<history_probe> history_probe::start(
    const asio::any_io_executor& strand, const session_settings& settings, completion<std::int64_t> done)
{
    const auto result = std::make_shared<history_probe>(settings.target.chroot, std::move(done));
    result->session_ = session::make(strand, settings, result);
    result->session_->start();
    return result;
}

history_probe::history_probe(const std::string& chroot, completion<std::int64_t> done)
    : path_(chroot + "/.clock"), done_(std::move(done))
{
}

std::shared_ptr<session> history_probe::stop() noexcept
{
    done_ = {};
    return std::exchange(session_, nullptr);
}

void history_probe::on_connected() noexcept
{
    if (session_)
        write();
}

void history_probe::write()
{
    session_->get_requests().write(
        path_, {}, [self = shared_from_this()](const reply& reply) { self->on_written(reply); });
}

void history_probe::on_written(const reply& reply)
{
    if (reply.outcome == status::no_node && session_ && !std::exchange(is_repeated_, true)) {
        make_nodes(session_->get_requests(), path_);
        write();
    } else {
        report(reply.ok() ? reply.stat.modified_in : 0);
    }
}

void history_probe::report(std::int64_t transaction)
{
    if (done_)
        std::exchange(done_, {})(transaction);
}

} // namespace colock::inline v0::zookeeper::detail
