// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/name_lookup_pool.hpp"

#include <colock/detail/generation.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/assert.hpp>
#include <boost/system/error_category.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <csignal>
#include <sys/eventfd.h>
#include <unistd.h>

namespace colock::inline v0::remote {

namespace {

using error_code = boost::system::error_code;

class name_error_category final : public boost::system::error_category
{
public:
    [[nodiscard]] const char* name() const noexcept override { return "colock.names"; }
    [[nodiscard]] std::string message(int value) const override
    {
        return static_cast<name_error>(value) == name_error::no_thread
                   ? "no thread can be started to look up the name; is the number of processes limited?"
                   : "the name service has not answered yet";
    }
};

/// Blocks all signals for threads that are started during its lifetime, so that the program's signal handlers run on
/// the program's threads.
class signal_blocker
{
public:
    signal_blocker() noexcept
    {
        ::sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &previous_);
    }
    signal_blocker(const signal_blocker&) = delete;
    signal_blocker& operator=(const signal_blocker&) = delete;
    ~signal_blocker() { ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

private:
    ::sigset_t previous_{};
};

} // namespace

error_code make_error_code(name_error error) noexcept
{
    static constexpr name_error_category category;
    return {static_cast<int>(error), category};
}

name_result ask_name_service(const std::string& host)
{
    name_result result;
    try {
        asio::io_context never_run;
        for (const auto& each : asio::ip::tcp::resolver(never_run).resolve(host, "", result.failure))
            result.addresses.push_back(each.endpoint().address());
    } catch (const boost::system::system_error& failed) {
        // The context could not be made, for example because no descriptor is free.
        result.failure = failed.code();
    }
    return result;
}

name_waiter::name_waiter() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (descriptor_ == -1)
        throw boost::system::system_error(errno, boost::system::system_category());
}

name_waiter::~name_waiter()
{
    ::close(descriptor_);
}

name_lookup_pool::name_lookup_pool(options settings)
    : options_(std::move(settings)),
      out_of_memory_(std::make_shared<const name_result>(name_result{.failure = asio::error::no_memory}))
{
}

std::shared_ptr<name_lookup_pool> name_lookup_pool::of_process()
{
    struct owner
    {
        const unsigned process = detail::generation.load();
        const std::shared_ptr<name_lookup_pool> pool = std::make_shared<name_lookup_pool>(options{});
        const owner* inherited = nullptr;
    };
    // Never destroyed, because the threads may run until the process has ended, after the destructors of static
    // objects. No mutex, because another thread of the parent may have held it when this process began.
    static std::atomic<const owner*> newest = nullptr;
    const owner* known = newest.load();
    while (!known || known->process != detail::generation.load()) {
        auto candidate = std::make_unique<owner>();
        candidate->inherited = known;
        if (newest.compare_exchange_strong(known, candidate.get()))
            known = candidate.release();
    }
    return known->pool;
}

void name_lookup_pool::start(const std::string& host, const std::shared_ptr<name_waiter>& waiter)
{
    const std::lock_guard guard(mutex_);
    std::erase_if(lookups_, [&, now = lease_clock::now()](const auto& each) {
        return each.second.late_result && now - each.second.ended_at >= options_.max_age;
    });
    if (const auto known = lookups_.find(host); known != lookups_.end() && known->second.late_result) {
        complete(*waiter, std::move(known->second.late_result));
        lookups_.erase(known);
        return;
    }
    if (!lookups_.contains(host)) {
        queue_.push_back(host);
        try {
            lookups_.try_emplace(host);
        } catch (...) {
            queue_.pop_back();
            throw;
        }
    }
    // If the rest fails without memory, the next call for any name continues.
    auto& waiters = lookups_.find(host)->second.waiters;
    std::erase_if(waiters, [](const auto& each) { return each.expired(); });
    waiters.push_back(waiter);
    if (idle_count_ < queue_.size() && thread_count_ < options_.max_threads)
        start_thread();
    if (thread_count_ > 0) {
        queued_.notify_one();
        return;
    }
    // Nobody looks up any name. The next attempts try to start a thread again.
    const auto no_thread = std::make_shared<const name_result>(name_result{.failure = name_error::no_thread});
    queue_.clear();
    for (const auto& [name, pending] : std::exchange(lookups_, {})) {
        for (const auto& each : pending.waiters) {
            if (const auto waiting = each.lock())
                complete(*waiting, no_thread);
        }
    }
}

name_result name_lookup_pool::result_of(const name_waiter& waiter)
{
    const std::lock_guard guard(mutex_);
    return waiter.result_ ? *waiter.result_ : name_result{.failure = name_error::unanswered};
}

std::size_t name_lookup_pool::thread_count()
{
    const std::lock_guard guard(mutex_);
    return thread_count_;
}

void name_lookup_pool::complete(name_waiter& waiter, result_ptr result)
{
    waiter.result_ = std::move(result);
    // The counter is far from its limit, so the call cannot fail.
    static_cast<void>(::eventfd_write(waiter.descriptor_, 1));
}

void name_lookup_pool::start_thread()
{
    const signal_blocker blocks_signals;
    try {
        // Nobody joins the thread, because the name service may take arbitrarily long, and `getaddrinfo` cannot be
        // cancelled. The thread keeps the pool alive.
        std::thread([self = shared_from_this()] { self->run_thread(); }).detach();
        ++thread_count_;
    } catch (const std::exception&) {
        // Without memory, or with too many threads. The other threads, if any, look up the name.
    }
}

void name_lookup_pool::run_thread()
{
    std::unique_lock guard(mutex_);
    for (;;) {
        ++idle_count_;
        const bool has_name = queued_.wait_for(guard, options_.idle_time, [this] { return !queue_.empty(); });
        --idle_count_;
        if (!has_name)
            break;
        const auto host = std::move(queue_.front());
        queue_.pop_front();
        guard.unlock();
        auto result = out_of_memory_;
        try {
            result = std::make_shared<const name_result>(options_.ask(host));
        } catch (const std::bad_alloc&) {
            // The result is the one that was allocated in advance.
        }
        guard.lock();
        end(host, result);
    }
    --thread_count_;
}

void name_lookup_pool::end(const std::string& host, const result_ptr& result)
{
    const auto entry = lookups_.find(host);
    BOOST_ASSERT(entry != lookups_.end());
    bool is_awaited = false;
    for (const auto& each : entry->second.waiters) {
        if (const auto waiter = each.lock()) {
            complete(*waiter, result);
            is_awaited = true;
        }
    }
    if (is_awaited) {
        lookups_.erase(entry);
        return;
    }
    entry->second.waiters.clear();
    entry->second.late_result = result;
    entry->second.ended_at = lease_clock::now();
}

} // namespace colock::inline v0::remote
