// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"
#include "zookeeper/client.hpp"
#include "zookeeper/driver/reply.hpp"

#include <memory>
#include <utility>

namespace colock::zookeeper::detail {

using remote::delivery;
using remote::operation_ptr;

/// Why a request has failed.
[[nodiscard]] failure_ptr failure_of(const reply& answer);

/// One whose answers come to members of its own, until it has ended. An operation of a single request is written so;
/// one of several requests is a `coroutine_operation`.
class request_operation : public remote::operation
{
public:
    explicit request_operation(client& owner) : owner_(std::static_pointer_cast<client>(owner.shared_from_this())) {}

    void start() final
    {
        ++round_;
        begin();
    }
    void fail(delivery how, failure_ptr why) final
    {
        over_ = true;
        failed(how, std::move(why));
    }

protected:
    /// Anew, if it could not be sent: what is known stands in the claim's state.
    virtual void begin() = 0;
    /// It has ended.
    virtual void failed(delivery how, failure_ptr why) = 0;

    [[nodiscard]] const settings& config() const noexcept { return owner_->config(); }
    [[nodiscard]] sessions& active_sessions() const noexcept { return owner_->active_sessions(); }
    /// Null: it cannot go on for now, and begins anew when it can.
    [[nodiscard]] requests* ask()
    {
        auto* const by = active_sessions().ask();
        if (!by)
            begin_anew();
        return by;
    }
    /// The answer of a request goes there, with what it was asked for; not if another round has begun since.
    template <class Operation, class... Context>
    [[nodiscard]] replied then(void (Operation::*member)(const reply&, const Context&...), Context... asked)
    {
        return [self = boost::intrusive_ptr<Operation>(static_cast<Operation*>(this)), member, round = round_,
                   ... asked = std::move(asked)](const reply& got) {
            if (self->takes(got, round))
                (self.get()->*member)(got, asked...);
        };
    }
    /// Number of the current round: an answer to a request of an earlier one is not looked at.
    [[nodiscard]] unsigned round() const noexcept { return round_; }
    /// Returns whether the operation goes on with this answer. Otherwise it has ended, or begins again.
    [[nodiscard]] bool takes(const reply& got, unsigned round)
    {
        if (over_ || round_ != round)
            return false;
        // The driver has codes of its own for what it cannot send at all.
        if ((got.what == status::unsent && got.code == 0) || got.what == status::ended) {
            begin_anew();
            return false;
        }
        if (got.what == status::batch_aborted) {
            with_ = batching::none;
            start();
            return false;
        }
        return true;
    }
    /// In which its requests may go.
    [[nodiscard]] batching with() const noexcept { return with_; }
    /// As soon as requests can be sent again, before its deadline.
    void begin_anew()
    {
        ++round_;
        owner_->queue().again(*this);
    }
    /// Before anybody is told.
    void end()
    {
        over_ = true;
        owner_->queue().ended(*this);
    }
    void end_failed(const reply& answer)
    {
        const operation_ptr kept(this);
        end();
        failed(answer.what == status::unanswered ? delivery::unanswered : delivery::answered, failure_of(answer));
    }

    const std::shared_ptr<client> owner_;

private:
    unsigned round_ = 0;
    batching with_ = batching::welcome;
    bool over_ = false;
};

} // namespace colock::zookeeper::detail
