// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/name_lookup.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace colock::inline v0::remote {

name_lookup::name_lookup(const asio::any_io_executor& executor, std::shared_ptr<name_lookup_pool> pool)
    : pool_(std::move(pool)), ready_(executor)
{
}

void name_lookup::start(const std::string& host, handler on_end)
{
    try {
        auto waiter = std::make_shared<name_waiter>();
        // Both objects own a descriptor, because each may be destroyed before the other.
        const int ready = ::fcntl(waiter->descriptor(), F_DUPFD_CLOEXEC, 0);
        if (ready == -1)
            throw boost::system::system_error(errno, boost::system::system_category());
        boost::system::error_code failed;
        ready_.assign(ready, failed);
        if (failed) {
            ::close(ready);
            throw boost::system::system_error(failed);
        }
        pool_->start(host, waiter);
        waiter_ = std::move(waiter);
    } catch (const boost::system::system_error& failed) {
        asio::post(ready_.get_executor(), asio::append(std::move(on_end), name_result{.failure = failed.code()}));
        return;
    }
    ready_.async_wait(asio::posix::stream_descriptor::wait_read,
        [self = shared_from_this(), on_end = std::move(on_end)](const boost::system::error_code& cancelled) mutable {
            const auto waiter = std::exchange(self->waiter_, nullptr);
            auto result = cancelled ? name_result{.failure = name_error::unanswered} : self->pool_->result_of(*waiter);
            std::move(on_end)(std::move(result));
        });
}

void name_lookup::cancel() noexcept
{
    boost::system::error_code ignored;
    ready_.cancel(ignored);
}

} // namespace colock::inline v0::remote
