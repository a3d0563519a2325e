// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/command_template.hpp"

namespace colock::mongo::detail {

/// What is asked of a server, with gaps for what differs. One document for each key:
///
/// - `t` token of the exclusive holder, or null; `x` when that expires, 0 without one
/// - `f` last fence; `o` who holds it (host, owner, comment, group); `a` since when, `r` when it was extended, or null
/// - `e` number of the claim's last request that was carried out: an earlier one is too late
/// - `h` shared holders, each with the same seven; `hx` not before the last of them expires, 0 without any
/// - `wt`, `wx` token of a writer that waits for readers, and until when they respect that
/// - `w` until when somebody waits, `wb` who that is, by the adapter's name for itself; `g` grows with every release
/// meanwhile
/// - `d` tokens that are refused, each until its own `x`; `dx` not before the last of those
/// - `p` since when nobody holds it: the only date; null while somebody does
///
/// A document without `x` and `hx` that has fields besides `_id` belongs to another program. A statement that meets one
/// fails with `changes_nothing`, or does not match it.
///
/// Times are milliseconds of the server, as integers. Test servers have no right answer, and say so by none, for dates
/// that are compared with `$$NOW` and for paths into arrays: all that is calculated goes without.
///
/// Gaps: `c` collection, `k` key, `t` token, `x` ttl or how much later, `l` when the request is too late, `e` its
/// number, `f` its fence, `o` owner data, `n` most holders, `m` for how long a write may wait for a majority, `b` until
/// when a token is refused, `v` the adapter's name for itself.
struct commands
{
    /// `findAndModify`; the answer's `value` has what `lock_view` reads.
    struct create
    {
        command_template with_ttl;
        command_template without;
    };
    /// Marks that somebody waits, unless it is granted.
    create exclusive_queues;
    create exclusive_once;
    create shared_queues;
    create shared_once;

    /// The same for a claim that asks for the first time, in less of the server's time: it is not granted, either,
    /// where readers were, and a writer that waits for readers does not say so. Then the long form has to decide.
    create first_exclusive_queues;
    create first_exclusive_once;
    /// As statements of one update. It fails, and changes nothing, unless it is granted, with the fence that it names.
    create join_first_exclusive;
    /// Then the documents have to be looked at.
    create join_shared_queues;
    create join_shared_once;
    /// The same for several claims of one key, in one statement: what a claim costs does not grow with the number of
    /// holders then. The first of them that find room are granted. It fails, and changes nothing, where one of them
    /// holds already, or was refused, or is late. More gaps: `a` their tokens, `q` their number, `h` of each what
    /// `several_holder` makes for its place `i`, and `x` the longest ttl.
    create join_several_queues;
    create join_several_once;
    create several_holder;
    /// It fails, and changes nothing, where what it is to release is not held.
    command_template join_release_exclusive;
    command_template join_release_shared;
    /// The same for the `q` tokens in `a`, unless each of them holds.
    command_template join_release_several;
    /// An update of whose statements some are done, and the others fail: as `server_check` knows. The first that is
    /// done gives the document its fence, by which `forget` finds what is left of a check that was cut off.
    command_template check_join;
    /// The first of those, which fails, alone.
    command_template check_code;
    /// Behind the collection and the filter: what the answer to `findAndModify` has, of `n` documents.
    command_template look;

    /// As the first four for all below. Nothing matches, or nothing changes, for what is not held any more.
    command_template release_exclusive;
    command_template release_shared;
    /// Statements of an update, of a group's holders, by whoever knows its id: never sooner than it was, so it may come
    /// late, and is no request of the holder's.
    command_template lengthen_exclusive;
    command_template lengthen_shared;
    create extend_exclusive;
    create extend_shared;
    command_template touch_exclusive;
    command_template touch_shared;
    /// The answer is what was there before. With `refuse` the token is not granted any more until `b`.
    command_template withdraw;
    command_template refuse;
    /// `u`: token of the next holder, for whom all the other gaps are. `e` is 0 where the last holder held it still,
    /// else -1.
    create hand_over;
    /// `t`: token of who holds it; `u`: of who adopts it, or has done so already, for whom all the other gaps are. Who
    /// waits is told: it may expire sooner now.
    create adopt_exclusive;
    create adopt_shared;
    /// The answer is what was there before, whole. `remove_named` matches where one of the tokens in the array `a` is.
    command_template remove_named;
    command_template remove_expired;
    /// Documents that nobody needs any more, and what a check that was cut off has left: `p` a date, `y` the server's
    /// time.
    command_template forget;
    /// A write that a majority has to confirm: a primary that is none any more cannot have it.
    command_template confirm;
    command_template watch;

    [[nodiscard]] static const commands& get();
};

} // namespace colock::mongo::detail
