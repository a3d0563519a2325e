// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/tally.hpp"

namespace colock::inline v0::quorum {

void tally::add_failure(const failure_ptr& why)
{
    const auto note = [&](std::size_t& count, failure_ptr& first) {
        ++count;
        if (!first)
            first = why;
    };
    if (why->code == errc::unavailable)
        note(unavailable, why_unavailable);
    else if (why->code == errc::outcome_unknown)
        note(unknown, why_unknown);
    else
        note(refused, why_refused);
}

void tally::add(bool is_yes, bool has_failed, const failure_ptr& why)
{
    if (has_failed)
        add_failure(why);
    else
        ++(is_yes ? yes : no);
}

failure_ptr tally::failure() const
{
    const auto failures = std::to_string(failed()) + " of " + std::to_string(nodes) + " masters failed: ";
    if (nodes - refused < needed())
        return make_failure(why_refused->code, failures + why_refused->detail, why_refused->cause);
    const bool may_be_done = yes + unknown + missing() >= needed();
    const auto& why = may_be_done || !why_unavailable ? why_unknown : why_unavailable;
    const auto& shown = why ? why : why_refused;
    return make_failure(
        may_be_done ? errc::outcome_unknown : errc::unavailable, failures + shown->detail, shown->cause);
}

verdict judge_create(const tally& so_far) noexcept
{
    if (so_far.yes >= so_far.needed())
        return verdict::yes;
    if (so_far.yes + so_far.missing() >= so_far.needed())
        return verdict::open;
    if (so_far.no > 0 && so_far.answered() >= so_far.needed())
        return verdict::no;
    if (so_far.missing() > 0 && so_far.answered() + so_far.missing() >= so_far.needed())
        return verdict::open;
    return verdict::failed;
}

verdict judge_held(const tally& so_far) noexcept
{
    if (so_far.yes >= so_far.needed())
        return verdict::yes;
    if (so_far.nodes - so_far.no < so_far.needed())
        return verdict::no;
    const bool may_get_yes = so_far.yes + so_far.missing() >= so_far.needed();
    const bool may_get_no = so_far.no + so_far.missing() >= so_far.needed();
    return so_far.missing() > 0 && (may_get_yes || may_get_no) ? verdict::open : verdict::failed;
}

verdict judge_adopt(const tally& so_far) noexcept
{
    const auto judged = judge_held(so_far);
    return judged == verdict::failed && so_far.missing() > 0 ? verdict::open : judged;
}

verdict judge_release(const tally& so_far) noexcept
{
    if (so_far.yes >= so_far.needed())
        return verdict::yes;
    if (so_far.no >= so_far.needed())
        return verdict::no;
    if (so_far.missing() > 0 && so_far.answered() + so_far.missing() >= so_far.needed())
        return verdict::open;
    if (so_far.answered() < so_far.needed())
        return verdict::failed;
    // A node that did not answer may have held the lock, too.
    return so_far.yes + so_far.failed() >= so_far.needed() ? verdict::yes : verdict::no;
}

} // namespace colock::inline v0::quorum
