// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/batch.hpp"
#include "redis/fence_anchor.hpp"
#include "redis/outbox.hpp"
#include "redis/reports.hpp"
#include "redis/settings.hpp"
#include "redis/waiting_writers.hpp"
#include "remote/connection_plan.hpp"
#include "remote/listening_plan.hpp"
#include "remote/lost_requests.hpp"
#include "remote/wait_sources.hpp"

#include <colock/adapter.hpp>
#include <colock/clock.hpp>
#include <colock/context_member.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace colock::redis::detail {

/// Our connections to one server, and all that travels on them: one connection for commands, fed in batches, and one
/// for messages while somebody is interested in them. Connects on first use, reconnects while it is needed, closes when
/// it is not.
///
/// Thread safety: submit, watch and the waits may be called from any thread; the rest is said beside it.
class client final : public colock::context_member, public std::enable_shared_from_this<client>
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings checked, std::weak_ptr<client_events> events);
    explicit client(settings checked);
    ~client() override;

    [[nodiscard]] const detail::settings& config() const noexcept { return config_; }

    /// Sends an operation as soon as may be. Its end comes from the strand; dropped if the context is gone.
    void submit(operation_ptr added);
    /// On the strand: which requests may still arrive though their connection has ended.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept;
    /// On the strand.
    [[nodiscard]] fence_anchor& anchor() noexcept { return anchor_; }
    /// Keys on which writers have met readers of late.
    [[nodiscard]] waiting_writers& writers() noexcept { return writers_; }

    [[nodiscard]] int listens(const std::string& channel) const { return sources_.armed(channel) ? 1 : 0; }
    [[nodiscard]] remote::interest watch(const std::string& channel);

    /// Closes what nobody needs, and ends at the latest after `deadline`.
    void close(lease_clock::duration deadline, completion<closed> done);
    /// The adapter is gone: nothing is kept beyond what is under way.
    void retire() noexcept;

    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

private:
    struct runtime;

    static constexpr auto later = [](const auto& strand, auto handler) { asio::post(strand, std::move(handler)); };
    static constexpr auto at_once_if_possible = [](const auto& strand, auto handler) {
        asio::dispatch(strand, std::move(handler));
    };
    template <class Function, class Initiate = decltype(later)>
    void on_strand(Function function, Initiate initiate = later);

    // All below: on the strand.
    void flush();
    void send(batch_ptr next);
    void answered(batch_ptr sent, std::uint64_t number, const error_code& code);
    void tell();
    void tell_after(unsigned turns);

    // What ends without an answer. A hundred thousand may do so at one moment: these end some of them, and the rest in
    // turns to come, between which the event loop can do something else.
    void end_overdue();
    [[nodiscard]] std::vector<operation_ptr> take_unanswered(lease_clock::time_point now, std::size_t& room);
    void end_unsent(std::vector<operation_ptr> overdue);
    void postpone_all(lease_clock::duration by);
    void fail_queue(const failure_ptr& why);
    void give_up_queue(const failure_ptr& why);
    /// Of what has been put there for it.
    void end_given_up();
    void fail(batch_ptr failed, const failure_ptr& why);

    void connect();
    void connect_to(const endpoint& where);
    void introduced(const failure_ptr& refused, const remote::lost_requests::identity& known_by);
    void opened();
    void command_link_ended(const error_code& code);
    void refuse(const failure_ptr& why);
    /// The attempt has failed; what passes is tried again.
    void fail_to_connect(const failure_ptr& why);
    [[nodiscard]] std::string address() const;
    [[nodiscard]] remote::connection_plan::action decide(remote::connection_plan::event what);
    /// \param loss why the connection has ended
    void carry_out(const remote::connection_plan::action& decided, const error_code& loss = {});
    /// Of the connection for commands.
    void let_go();
    void retry_in(lease_clock::duration delay);

    /// The connection for commands is a new one.
    void check_messages();
    /// They would come from another server than the one that commands go to.
    [[nodiscard]] bool messages_are_elsewhere() const;
    void ensure_messages();
    [[nodiscard]] remote::listening_plan::action decide(remote::listening_plan::event what);
    void carry_out(const remote::listening_plan::action& decided);
    void connect_messages_in(lease_clock::duration delay);
    void connect_messages();
    void messages_greeted(const reply_list& replies);
    void subscribe_some();
    void subscribed(const std::vector<remote::wait_sources::source_ptr>& asked, const reply& answer);
    void unsubscribe(const std::vector<std::string>& names);
    void receive_messages();
    void message_link_ended();
    /// Some of what is due for channels by now, and the rest in turns to come.
    void sweep_channels();
    /// These do some of it, and tell whether there is more.
    [[nodiscard]] bool forget_unused();
    [[nodiscard]] bool poll_some();

    void arm_tick();
    void tick(lease_clock::time_point due);
    void close_if_idle();
    void give_up_all();
    void finish_close() noexcept;
    [[nodiscard]] remote::connection_plan::demand demand() const noexcept;
    [[nodiscard]] remote::connection_plan::surroundings surroundings() const noexcept;
    [[nodiscard]] bool needed() const noexcept;
    [[nodiscard]] bool watched() const noexcept { return !sources_.empty(); }

    /// Of the channels; from any thread.
    void ask_for_turn();

    const detail::settings config_;

    outbox outbox_;
    /// Guards whether there is a runtime.
    mutable colock::detail::light_mutex mutex_;
    /// What belongs to the strand, the strand included. Null once the context has shut down.
    std::unique_ptr<runtime> runtime_;
    /// The last answer found nothing else to do: the next operation need not wait for others to travel with.
    std::atomic<bool> one_at_a_time_{false};
    /// A flush has been posted that will find whatever is queued before it begins.
    std::atomic<bool> flush_due_{false};
    fence_anchor anchor_{config_};
    waiting_writers writers_;

    /// The channel of each key that somebody waits for.
    remote::wait_sources sources_;
    /// A turn of the channels has been posted that will find whatever is due before it begins.
    std::atomic<bool> turn_due_{false};
};

} // namespace colock::redis::detail
