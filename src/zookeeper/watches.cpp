// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/watches.hpp"

#include "remote/deadlines.hpp"

#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

using remote::most_per_turn;

namespace {

bool is_folder(std::string_view source)
{
    return source.ends_with('/');
}

} // namespace

void wake_all(remote::wait_sources::completions ended)
{
    for (auto& each : ended)
        each(woken{});
}

bool watches::ask_some(requests& by, remote::connection_number session)
{
    forget_unused();
    const auto asked = sources_.take_idle(most_per_turn);
    for (const auto& each : asked) {
        auto done = [self = owner_.keep(*this), each, session](
                        const reply& answer) { self->answered(each, session, answer); };
        if (is_folder(each->name))
            by.children_and_watch(each->name.substr(0, each->name.size() - 1), std::move(done));
        else
            by.read_and_watch(each->name, std::move(done));
    }
    return asked.size() == most_per_turn;
}

void watches::answered(
    const remote::wait_sources::source_ptr& which, remote::connection_number session, const reply& answer)
{
    // What is cut off is asked for again in the next round. What was refused, or is not there, may have changed:
    // whoever waits for it looks.
    if (answer.what >= status::unsent)
        return;
    // A folder that is not there is not watched, but may be made at any time; a node has its name once.
    if (answer.what == status::no_node && is_folder(which->name))
        wake_all(sources_.disarmed({which->name}));
    // Whoever waits for its end has seen it there.
    else if (answer.ok() && !is_folder(which->name))
        wake_all(sources_.arm_unchanged(which, session));
    else
        wake_all(sources_.arm({which}));
}

void watches::changed(std::string_view path)
{
    if (!path.empty()) {
        wake_all(sources_.disarmed({of_node(std::string(path)), of_children(std::string(path))}));
        return;
    }
    sources_.begin_round();
    owner_.arm_turn();
}

void watches::forget_unused()
{
    static_cast<void>(sources_.forget_unused(lease_clock::now(), lease_clock::duration::zero(), most_per_turn));
}

} // namespace colock::zookeeper::detail
