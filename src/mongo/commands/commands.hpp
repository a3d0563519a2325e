// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/command_template.hpp"

namespace colock::inline v0::mongo::detail {

/// Templates of all commands for locks. Each key has one document:
///
/// - `t` token of the exclusive holder, or null; `x` expiry of the exclusive holder, 0 without one
/// - `f` last fence; `o` owner of the lock (host, owner, comment, group); `a` time of the grant, `r` time of the last
/// extension, or null
/// - `e` number of the last request of the claim that was carried out: an earlier request is too late
/// - `h` shared holders, each with the same seven fields; `hx` is not before the last of their expiries, 0 without
/// holders
/// - `wt`, `wx` token of a writer that waits for readers, and the time until which readers respect it
/// - `w` time until which a claim waits; `wb` name of the adapter that waits; `g` counter that grows with every release
/// while a claim waits
/// - `d` refused tokens, each until its own `x`; `dx` is not before the last of these times
/// - `p` time since which nobody holds the lock, the only field of type date; null while the lock is held
///
/// A document without `x` and `hx` that has fields besides `_id` belongs to another program. No statement changes it:
/// it fails with the server's `changes_nothing`, does not match, or returns the document as it is.
///
/// Times are milliseconds of the server's clock, as integers. Some servers other than MongoDB, which tests use,
/// silently return wrong results for dates that are compared with `$$NOW`, and for paths into arrays. Therefore no
/// calculation uses these.
///
/// Placeholders: `c` collection, `k` key, `t` token, `x` ttl of a grant or an extension, `l` time from which the
/// request is too late, `e` number of the request, `f` fence of the request, `o` owner, `n` maximum number of holders,
/// `m` how long a write may wait for a majority, `b` time until which a token is refused, `v` name of the adapter.
struct commands
{
    /// The two forms of a command or a statement that sets an expiry.
    struct ttl_forms
    {
        command_template with_ttl;
        command_template without_ttl;
    };
    /// `findAndModify` commands. `value` in the reply contains the fields that `lock_view` reads. The `queues` forms
    /// record in the document that a claim waits, unless the claim is granted.
    ttl_forms exclusive_queues;
    ttl_forms exclusive_once;
    ttl_forms shared_queues;
    ttl_forms shared_once;

    /// Forms for the first request of a claim, which take less of the server's time. They do not grant the lock before
    /// `hx`, even if no shared holder is left, and do not record a writer that waits for readers. In these cases
    /// `exclusive_queues` or `exclusive_once` has to decide.
    ttl_forms first_exclusive_queues;
    ttl_forms first_exclusive_once;
    /// Statements of an update. A statement fails, and changes nothing, unless it grants the lock with the fence that
    /// it names.
    ttl_forms batched_first_exclusive;
    /// Statements of an update. Their results have to be read from the documents afterwards.
    ttl_forms batched_shared_queues;
    ttl_forms batched_shared_once;
    /// One statement for several claims of one key, so that the cost of a claim does not grow with the number of
    /// holders. The first claims that find room are granted. The statement fails, and changes nothing, if one of the
    /// claims already holds the lock, was refused or is too late.
    ///
    /// More placeholders: `a` tokens of the claims, `q` number of claims, `h` result of `several_holder` for each claim
    /// with its place `i`, and `x` the longest ttl.
    ttl_forms batched_several_queues;
    ttl_forms batched_several_once;
    ttl_forms several_holder;
    /// Fails, and changes nothing, if the token to be released does not hold the lock.
    command_template batched_release_exclusive;
    command_template batched_release_shared;
    /// Releases the `q` tokens in `a`. Fails, and changes nothing, unless each of them holds the lock.
    command_template batched_release_several;
    /// An update of which some statements have to succeed and the others have to fail; `server_check` knows which. The
    /// first statement that succeeds sets the fence of the document, by which `forget` finds the document of an
    /// interrupted check.
    command_template check_batched;
    /// The first statement of `check_batched` alone, which has to fail.
    command_template check_code;
    /// End of a `find` command, after the collection and the filter. Returns the same fields as `findAndModify`, of `n`
    /// documents.
    command_template find_options;

    /// The commands below are `findAndModify` commands, unless another form is stated. If the lock is not held any
    /// more, nothing matches or nothing changes.
    command_template release_exclusive;
    command_template release_shared;
    /// Statements of an update, which extend the holders of a group. Any client that knows the id of the group may send
    /// them. They never make an expiry earlier, so they may arrive late, and they do not count as requests of the
    /// holder.
    command_template extend_group_exclusive;
    command_template extend_group_shared;
    ttl_forms extend_exclusive;
    ttl_forms extend_shared;
    /// Set only the number of the request. The reply shows whether the holder still holds the lock.
    command_template touch_exclusive;
    command_template touch_shared;
    /// Abandon the claim with this token: they remove it as a holder and as a waiting writer. `refuse` also refuses the
    /// token until `b`. The reply contains the document before the change.
    command_template withdraw;
    command_template refuse;
    /// `u`: token of the next holder, to which all other placeholders except `t` belong. Sets `e` to 0 if the
    /// previous holder still held the lock, otherwise to -1.
    ttl_forms hand_over;
    /// `t`: token of the holder. `u`: token of the adopting claim, which may have adopted the lock already. All other
    /// placeholders belong to the adopting claim. Waiters are notified, because the lock may expire sooner now.
    ttl_forms adopt_exclusive;
    ttl_forms adopt_shared;
    /// The reply contains the whole document before the change. `remove_named` matches a document in which one of the
    /// tokens in the array `a` is a holder.
    command_template remove_named;
    command_template remove_expired;
    /// Deletes documents that are not needed any more, and the documents of interrupted checks. `p`: date before which
    /// a lock must have become free. `y`: the server's time. `z`: fence below which the document of a check is deleted.
    command_template forget;
    /// A write that a majority has to confirm. A former primary cannot get this confirmation.
    command_template confirm;
    /// Stores the server's time in a document of its own, and returns that document.
    command_template clock;
    /// Opens the change stream that reports the changes of `g`.
    command_template watch;

    [[nodiscard]] static const commands& get();
};

} // namespace colock::inline v0::mongo::detail
