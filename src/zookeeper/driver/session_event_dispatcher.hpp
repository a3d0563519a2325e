// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/trouble.hpp"
#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/session/session_events.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

/// What a session still has to tell: news of itself, changes that were watched for, and answers, in parts.
///
/// Thread safety: none.
class session_event_dispatcher
{
public:
    enum class news : unsigned char
    {
        connected,
        suspended,
        unreachable,
        outlived,
        expired,
        denied,
    };

    session_event_dispatcher() = default;
    session_event_dispatcher(const session_event_dispatcher&) = delete;
    session_event_dispatcher& operator=(const session_event_dispatcher&) = delete;
    ~session_event_dispatcher() { drop(); }

    void add(news what) { announced_.push_back(what); }
    void add(told_list& fresh) noexcept { told_.splice(told_.end(), fresh); }
    void add(std::unique_ptr<told> one) noexcept { told_.push_back(*one.release()); }
    /// Never to be told.
    void drop() noexcept;

    void set_trouble(trouble why) { trouble_ = std::move(why); }
    /// We have cut a connection on which nothing was heard: the driver does not know why it has ended.
    void cut_silent() noexcept { was_cut_ = true; }
    /// The same, whatever the driver says from now on until somebody else has greeted us.
    void met_a_stranger();
    void met_a_server() noexcept { is_stranger_ = false; }

    /// Hands on what the driver has noted.
    void tell_notes(zk_client& driver, session_events& to);
    void tell_news(session_events& to);
    /// Some of the rest; answers are told even if there is nobody else to be told. Returns how many.
    int tell_some(session_events* to);
    [[nodiscard]] bool empty() const noexcept { return told_.empty(); }

private:
    std::vector<news> announced_;
    told_list told_;
    /// Why there is no connection: the driver's last word, or ours.
    trouble trouble_;
    bool is_stranger_ = false;
    bool was_cut_ = false;
};

} // namespace colock::zookeeper::detail
