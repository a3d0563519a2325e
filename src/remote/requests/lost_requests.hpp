// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace colock::remote {

/// A connection or a session of ours: counted from 1, never used twice.
using connection_number = std::uint64_t;

/// Of each connection or session that ended with requests unanswered: whether one of these may still arrive at the
/// server and take effect, or is proven dead.
///
/// Proof is that the server has closed it for us, or that the process of the server that it was made to is gone. That
/// our side is closed is none: what it has sent may still be on its way.
///
/// Thread safety: none.
class lost_requests
{
public:
    /// What a server knows one by.
    struct identity
    {
        std::int64_t id = 0;
        /// The process of the server; empty: not known.
        std::string process{};
    };
    struct suspect
    {
        connection_number number;
        std::int64_t id;
    };

    /// It has ended with requests unanswered.
    void add(connection_number ended, identity known);
    /// A request of it that was not answered may still take effect. Not so for the one in use, whose requests are
    /// carried out in order.
    [[nodiscard]] bool may_arrive(connection_number sent_on) const noexcept;

    /// A connection to that process of the server stands: what was made to another has ended with that.
    void connected_to(std::string_view process);
    /// What the server that we are connected to has to be asked to close, before anything else is asked of it. To ask
    /// it for connections of another process would hit strangers.
    [[nodiscard]] std::vector<suspect> to_close() const;
    void closed_by_server(connection_number proven) { unproven_.erase(proven); }
    /// The server refuses that; it is never asked again for this one.
    void not_to_be_closed(connection_number refused);

    /// In the child of a fork, for which all up to that number are the parent's.
    void inherit(connection_number last) noexcept;
    [[nodiscard]] bool is_from_parent(connection_number number) const noexcept { return number <= inherited_; }

private:
    struct unproven
    {
        identity known;
        bool refused = false;
    };
    std::map<connection_number, unproven> unproven_;
    /// Nothing is known any more of those up to this number.
    connection_number forgotten_ = 0;
    connection_number inherited_ = 0;
};

/// What one claim has asked for without an answer, each by the connection that it was sent on.
///
/// Thread safety: that of the claim.
class doubts
{
public:
    void add(connection_number sent_on) { unanswered_.push_back(sent_on); }
    [[nodiscard]] bool empty() const noexcept { return unanswered_.empty(); }
    /// An answer to a later request of the claim came on `answered`: whatever was sent on the same one is past, and
    /// what is settled. True if that was the last doubt.
    [[nodiscard]] bool dispel(connection_number answered, const lost_requests& known);

private:
    std::vector<connection_number> unanswered_;
};

} // namespace colock::remote
