// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace colock::inline v0::remote {

/// Reasons why there are no addresses, except those that the name service itself reports.
enum class name_error
{
    /// The name service has not answered before the caller stopped waiting.
    unanswered = 1,
    /// The process has no thread for names, and cannot start one.
    no_thread,
};
[[nodiscard]] boost::system::error_code make_error_code(name_error error) noexcept;

/// Addresses of a host name in the order in which they should be tried, or the reason why there are none.
struct name_result
{
    boost::system::error_code failure{};
    std::vector<asio::ip::address> addresses{};
};

/// Asks the name service of the system. Blocks the thread until it answers.
[[nodiscard]] name_result ask_name_service(const std::string& host);

/// A caller that waits for the result of a lookup. A caller that does not wait any more destroys this object.
class name_waiter
{
public:
    /// \throws boost::system::system_error if the process has too many open files
    name_waiter();
    name_waiter(const name_waiter&) = delete;
    name_waiter& operator=(const name_waiter&) = delete;
    ~name_waiter();

    /// File descriptor, owned by this object, that becomes readable when the result is available.
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
    friend class name_lookup_pool;

    const int descriptor_;
    /// Guarded by the pool's mutex.
    std::shared_ptr<const name_result> result_;
};

/// Looks up host names on its own threads, because `getaddrinfo` blocks and cannot be cancelled.
///
/// - Every process has one pool, which belongs to no execution context. A name is looked up once at a time for all
///   callers.
/// - A thread is started if all others are busy and there are fewer than `max_threads`. A thread ends when it has had
///   no name for `idle_time`. Nobody joins the threads: the destruction of an execution context and `exit()` do not
///   wait for a name.
/// - Names are looked up in the order of the first request for each, whether or not a caller still waits. So a name
///   waits at most for the lookups that were requested before it, and is looked up even if it waits longer than its
///   callers do.
/// - A result is given to all callers that wait. If none waits any more, the next caller receives the result if that
///   happens within `max_age`. Otherwise no result is stored.
///
/// Thread safety: all members may be called from any thread.
class name_lookup_pool : public std::enable_shared_from_this<name_lookup_pool>
{
public:
    struct options
    {
        std::function<name_result(const std::string& host)> ask = ask_name_service;
        std::size_t max_threads = 4;
        std::chrono::milliseconds idle_time{10'000};
        /// Age from which on a late result is not used any more.
        lease_clock::duration max_age = std::chrono::seconds(10);
    };

    explicit name_lookup_pool(options settings);

    /// Returns the pool of this process. A child has another one than its parent, whose threads it lacks.
    [[nodiscard]] static std::shared_ptr<name_lookup_pool> of_process();

    /// Looks up the name for `waiter`, unless the same name is already being looked up.
    void start(const std::string& host, const std::shared_ptr<name_waiter>& waiter);
    /// Returns the result for which the caller has waited. Its failure is `unanswered` if there is no result yet.
    [[nodiscard]] name_result result_of(const name_waiter& waiter);
    [[nodiscard]] std::size_t thread_count();

private:
    using result_ptr = std::shared_ptr<const name_result>;
    struct lookup
    {
        std::vector<std::weak_ptr<name_waiter>> waiters{};
        /// Result for which no caller has waited; null until the lookup has ended.
        result_ptr late_result{};
        lease_clock::time_point ended_at{};
    };

    static void complete(name_waiter& waiter, result_ptr result);
    void start_thread();
    void run_thread();
    void end(const std::string& host, const result_ptr& result);

    const options options_;
    /// Allocated in advance.
    const result_ptr out_of_memory_;
    std::mutex mutex_;
    std::condition_variable queued_;
    /// Names that no thread has taken yet.
    std::deque<std::string> queue_;
    std::map<std::string, lookup, std::less<>> lookups_;
    std::size_t thread_count_ = 0;
    std::size_t idle_count_ = 0;
};

} // namespace colock::inline v0::remote

template <>
struct boost::system::is_error_code_enum<colock::remote::name_error> : std::true_type
{
};
