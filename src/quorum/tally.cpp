// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/tally.hpp"

namespace colock::inline v0::quorum {

void tally::add_failure(const failure_ptr& failure)
{
    const auto note = [&](std::size_t& count, failure_ptr& first) {
        ++count;
        if (!first)
            first = failure;
    };
    if (failure->code == errc::unavailable)
        note(unavailable, unavailable_failure);
    else if (failure->code == errc::outcome_unknown)
        note(unknown, unknown_failure);
    else
        note(refused, refused_failure);
}

void tally::add(bool is_yes, bool has_failed, const failure_ptr& failure)
{
    if (has_failed)
        add_failure(failure);
    else
        ++(is_yes ? yes : no);
}

failure_ptr tally::failure() const
{
    const auto failures = std::to_string(failed()) + " of " + std::to_string(nodes) + " masters failed: ";
    if (nodes - refused < needed())
        return make_failure(refused_failure->code, failures + refused_failure->detail, refused_failure->cause);
    const bool may_be_done = yes + unknown + missing() >= needed();
    const auto& preferred = may_be_done || !unavailable_failure ? unknown_failure : unavailable_failure;
    const auto& shown = preferred ? preferred : refused_failure;
    return make_failure(
        may_be_done ? errc::outcome_unknown : errc::unavailable, failures + shown->detail, shown->cause);
}

verdict judge_create(const tally& tally) noexcept
{
    if (tally.yes >= tally.needed())
        return verdict::yes;
    if (tally.yes + tally.missing() >= tally.needed())
        return verdict::open;
    if (tally.no > 0 && tally.answered() >= tally.needed())
        return verdict::no;
    if (tally.missing() > 0 && tally.answered() + tally.missing() >= tally.needed())
        return verdict::open;
    return verdict::failed;
}

verdict judge_held(const tally& tally) noexcept
{
    if (tally.yes >= tally.needed())
        return verdict::yes;
    if (tally.nodes - tally.no < tally.needed())
        return verdict::no;
    const bool may_get_yes = tally.yes + tally.missing() >= tally.needed();
    const bool may_get_no = tally.no + tally.missing() >= tally.needed();
    return tally.missing() > 0 && (may_get_yes || may_get_no) ? verdict::open : verdict::failed;
}

verdict judge_adopt(const tally& tally) noexcept
{
    const auto result = judge_held(tally);
    return result == verdict::failed && tally.missing() > 0 ? verdict::open : result;
}

verdict judge_release(const tally& tally) noexcept
{
    if (tally.yes >= tally.needed())
        return verdict::yes;
    if (tally.no >= tally.needed())
        return verdict::no;
    if (tally.missing() > 0 && tally.answered() + tally.missing() >= tally.needed())
        return verdict::open;
    if (tally.answered() < tally.needed())
        return verdict::failed;
    // A node that did not answer may have held the lock, too.
    return tally.yes + tally.failed() >= tally.needed() ? verdict::yes : verdict::no;
}

} // namespace colock::inline v0::quorum
