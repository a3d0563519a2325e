// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/client_base.hpp"
#include "remote/errands.hpp"

#include <atomic>
#include <cstddef>
#include <limits>

namespace colock::remote {

/// A client whose operations are started in their order, as soon as each can be, and end one by one.
///
/// Thread safety: submit may be called from any thread; the rest as client_base.
class errand_client : public client_base
{
public:
    /// Starts an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);

    // For operations, on the strand.
    /// It could not be sent after all.
    void again(operation& which);
    /// Before it tells anybody.
    void ended(operation& which);

protected:
    explicit errand_client(deadlines given) noexcept : deadlines_(given) {}

    /// What waits is started, as far as it can be.
    void flush();
    /// In a turn of its own: whoever was just answered may ask for more, which goes with it.
    void flush_soon();

    /// Somebody wants to be started.
    virtual void want() = 0;
    /// How many may be under way at a time: all of them may be told at one moment that they were cut off.
    [[nodiscard]] virtual std::size_t most_under_way() const noexcept
    {
        return std::numeric_limits<std::size_t>::max();
    }
    /// The next can be started now.
    [[nodiscard]] virtual bool takes_more() = 0;
    /// As many were started as could be: what they share goes out.
    virtual void started_all() {}
    /// Nothing that was started is under way any more.
    virtual void all_ended() = 0;
    /// Why the server has refused us, as long as some may still have to be told; else null.
    [[nodiscard]] virtual failure_ptr denial() noexcept = 0;
    /// Whoever has waited for the connection was told of that.
    virtual void denial_told() = 0;
    /// Why there is no connection; null if there is one, or none was ever needed.
    [[nodiscard]] virtual const failure_ptr& problem() const noexcept = 0;
    /// Something stands that needs the connection, though nothing is asked.
    [[nodiscard]] virtual bool in_use() const noexcept = 0;
    /// Another connection than that for commands is open.
    [[nodiscard]] virtual bool others_open() const noexcept = 0;
    /// Nothing is asked, and nobody waits.
    [[nodiscard]] bool is_calm() const noexcept;
    /// Who would be started next; null: nobody waits.
    [[nodiscard]] const operation* next() const noexcept { return errands_.first(); }
    [[nodiscard]] std::size_t queued() const noexcept { return errands_.waiting(); }
    [[nodiscard]] lease_clock::duration usual_pace() const noexcept { return deadlines_.pace(); }
    /// The connection is of no use any more, though it may stand.
    virtual void give_up_connection() = 0;
    /// At once in the child of a fork, before it asks for anything: all that was asked until now is over for it, and is
    /// told from the strand.
    void end_inherited();

    void refuse(const failure_ptr& why) final;
    /// Moves the deadlines, and ends what is overdue.
    void end_overdue(lease_clock::duration stood_still);

private:
    [[nodiscard]] connection_plan::demand demand() const noexcept final;
    [[nodiscard]] connection_plan::surroundings surroundings() const noexcept final;
    void give_up_all() final;
    [[nodiscard]] bool owes_news() const noexcept final { return errands_.owes_news(); }
    void drop_all() noexcept final { errands_.drop_all(); }
    void start_held_back();
    void end_some();

    const deadlines deadlines_;
    errands errands_;
    /// Who asks next goes out in its caller's turn: those before it were alone, each of them, so that others to go with
    /// are not to be expected.
    std::atomic<bool> at_once_{false};
    bool flushing_ = false;
    /// The next waits until one of those that are under way has ended.
    bool is_full_ = false;
    /// More of them end in a handler that is posted already.
    bool ending_ = false;
};

} // namespace colock::remote
