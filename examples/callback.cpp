// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Locks without coroutines: every operation has a function with the prefix async_ that takes any completion token. Here
// the token is a callback.

#include <colock/colock.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

//[ one_step
// Work of one step: the function runs under the lock. The lock is released before the result is delivered.
void count_visit(colock::locker& locker, int& visits)
{
    locker.async_with_lock(
        "visits", [&visits] { return ++visits; },
        [](std::exception_ptr failure, int visit) {
            if (failure)
                std::rethrow_exception(failure);
            std::cout << "visit " << visit << '\n';
        });
}
//]

// Work of many steps: the lock is a member of the object that keeps the state of the work. When the work ends, this
// object is destroyed, and the lock is released in the background.
class backup : public std::enable_shared_from_this<backup>
{
public:
    backup(colock::locker locker, std::string name)
        : locker_(std::move(locker)), name_(std::move(name)), timer_(locker_.get_executor())
    {
    }

    void start()
    {
        locker_.async_acquire(
            "backup", {.ttl = 10s}, [self = shared_from_this()](error_code failed, colock::lock lock) {
                if (failed) {
                    std::cout << self->name_ << ": " << failed.message() << '\n';
                    return;
                }
                self->lock_ = std::move(lock);
                self->copy(1);
            });
    }

private:
    void copy(int part)
    {
        std::cout << name_ << ": part " << part << '\n';
        if (part == 3)
            return;
        timer_.expires_after(10ms); // simulates copying a part
        timer_.async_wait([self = shared_from_this(), part](error_code failed) {
            if (!failed)
                self->copy(part + 1);
        });
    }

    colock::locker locker_;
    std::string name_;
    asio::steady_timer timer_;
    colock::lock lock_;
};

int main()
{
    asio::io_context io;
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));

    int visits = 0;
    count_visit(locker, visits);
    count_visit(locker, visits);
    std::make_shared<backup>(locker, "first backup")->start();
    std::make_shared<backup>(locker, "second backup")->start();
    io.run();
    std::cout << "still held: " << locker.held_locks().size() << '\n';
}
