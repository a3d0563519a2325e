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
using epoch = std::uint64_t;

/// Of each connection or session that ended with requests unanswered: whether one of these may still arrive at the
/// server and take effect, or is proven dead.
///
/// Proof is that the server has closed it for us, or that the process of the server that it was made to is gone. That
/// our side is closed is none: what it has sent may still be on its way.
///
/// Thread safety: none.
class epochs
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
        epoch number;
        std::int64_t id;
    };

    /// It has ended with requests unanswered.
    void lost(epoch number, identity known);
    /// Every request of it that was not answered can take effect no more, or has already. True for the one in use,
    /// whose requests are carried out in order.
    [[nodiscard]] bool settled(epoch number) const noexcept;

    /// A connection to that process stands: the ones that this process has to be asked to close, before anything else
    /// is asked of it. To ask a process for those of another would hit strangers; they ended with it.
    [[nodiscard]] std::vector<suspect> to_close(std::string_view process);
    void closed(epoch number) { unproven_.erase(number); }
    /// It cannot be asked; never again for this one.
    void refused(epoch number);

    /// In the child of a fork, for which all up to that number are the parent's.
    void inherit(epoch last) noexcept;
    [[nodiscard]] bool inherited(epoch number) const noexcept { return number <= inherited_; }

private:
    struct unproven
    {
        identity known;
        bool refused = false;
    };
    std::map<epoch, unproven> unproven_;
    /// Nothing is known any more of those up to this number.
    epoch forgotten_ = 0;
    epoch inherited_ = 0;
};

/// What one claim has asked for without an answer, each by the connection that it was sent on.
///
/// Thread safety: that of the claim.
class doubts
{
public:
    void add(epoch sent_on) { unanswered_.push_back(sent_on); }
    [[nodiscard]] bool empty() const noexcept { return unanswered_.empty(); }
    /// An answer to a later request of the claim came on `answered`: whatever was sent on the same one is past, and
    /// what is settled. True if that was the last doubt.
    [[nodiscard]] bool disproved_by(epoch answered, const epochs& known);

private:
    std::vector<epoch> unanswered_;
};

} // namespace colock::remote
