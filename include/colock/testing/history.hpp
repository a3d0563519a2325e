// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/lock.hpp>
#include <colock/status.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace colock::testing {

/// Records what a test's processes did under their locks, and checks that the locks have protected it. The test notes
/// the work, usually where it replaces the resource of the program: a database, a file, another service.
///
///     colock::testing::history history;
///     ...
///     const auto work = history.begin_work("stock", fence); // ends with its scope
///     ...
///     BOOST_TEST(history.check() == "");
///
/// Thread safety: all members may be called from any thread.
class history
{
public:
    /// A piece of work, which ends when this object is destroyed. Move-only.
    class [[nodiscard]] work
    {
    public:
        /// Moves the work. `other` is empty afterwards.
        work(work&& other) noexcept;
        work& operator=(work&&) = delete;
        ~work();

    private:
        friend class history;
        struct state;
        explicit work(std::unique_ptr<state> begun) noexcept;
        std::unique_ptr<state> state_;
    };

    /// Makes an empty history.
    history();
    history(const history&) = delete;
    history& operator=(const history&) = delete;
    ~history();

    /// Notes that work on a resource begins.
    /// \param resource the key of the lock, or any other name
    /// \param fence the fence of the lock, or 0 if it is not known; rule 2 of check() needs it
    /// \param mode shared work may overlap other shared work
    work begin_work(std::string resource, std::uint64_t fence = 0, lock_mode mode = lock_mode::exclusive);
    /// Notes that work under this lock begins. The resource is the key of the lock.
    work begin_work(const lock& held);

    /// Returns an empty string if the history obeys all rules. Otherwise it returns a line for each violation, followed
    /// by the history, for the message of a test.
    /// - Rule 1: two pieces of work on one resource do not overlap, unless both are shared.
    /// - Rule 2: work does not have a lower fence than earlier work on the resource. Fences of shared work are compared
    ///   only with those of exclusive work. A fence of 0 is not compared.
    /// - Rule 3: work that is noted with its lock begins while `lock::held()` is true.
    [[nodiscard]] std::string check() const;
    /// Returns the history, one line for each event. Times count from the construction of this object, by lease_clock.
    [[nodiscard]] std::string text() const;

private:
    struct state;
    const std::shared_ptr<state> state_;
};

} // namespace colock::testing
