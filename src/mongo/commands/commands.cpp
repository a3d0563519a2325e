// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/commands.hpp"

#include "mongo/commands/lock_view.hpp"

#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

namespace {

using std::string;

// Expressions of an update pipeline.

const string now = R"({"$toLong":"$$NOW"})";
const string none = R"({"$numberLong":"0"})";

string cond(const string& test, const string& then, const string& otherwise)
{
    return R"({"$cond":[)" + test + ',' + then + ',' + otherwise + "]}";
}
string binary(const char* what, const string& left, const string& right)
{
    return string(R"({")") + what + R"(":[)" + left + ',' + right + "]}";
}
string list(std::initializer_list<string> each)
{
    string all;
    for (const auto& one : each)
        (all += all.empty() ? "" : ",") += one;
    return '[' + all + ']';
}
string all_of(std::initializer_list<string> each)
{
    return R"({"$and":)" + list(each) + '}';
}
string above(const string& left, const string& right)
{
    return binary("$gt", left, right);
}
string below(const string& left, const string& right)
{
    return binary("$lt", left, right);
}
string equal(const string& left, const string& right)
{
    return binary("$eq", left, right);
}
string either(const string& left, const string& right)
{
    return binary("$or", left, right);
}
string differs(const string& left, const string& right)
{
    return binary("$ne", left, right);
}
string sum(const string& left, const string& right)
{
    return binary("$add", left, right);
}
/// Maximum of numbers. A missing field is less than any number.
string greatest_of(std::initializer_list<string> each)
{
    return R"({"$max":)" + list(each) + '}';
}
string if_null(const string& field, const string& otherwise)
{
    return R"({"$ifNull":["$)" + field + "\"," + otherwise + "]}";
}
string date(const string& from)
{
    return R"({"$toDate":)" + from + '}';
}
string size_of(const string& array)
{
    return R"({"$size":)" + array + '}';
}
/// Elements for which `test` holds; each is `$$i` in `test`.
string filtered(const string& array, const string& test)
{
    return R"({"$filter":{"input":)" + array + R"(,"as":"i","cond":)" + test + "}}";
}

const string x = if_null("x", none);
const string f = if_null("f", none);
const string e = if_null("e", none);
const string hx = if_null("hx", none);
const string wx = if_null("wx", none);
const string w = if_null("w", none);
const string g = if_null("g", none);
const string dx = if_null("dx", none);
const string h = if_null("h", "[]");
const string d = if_null("d", "[]");
const string t_or_null = if_null("t", "null");
const string o_or_null = if_null("o", "null");
const string wt_or_null = if_null("wt", "null");

const string token = R"("?t")";
const string number = R"("?e")";
const string literal_owner = R"({"$literal":"?o"})";

const string is_live = above(R"("$$i.x")", now);
const string is_own_token = equal(R"("$$i.t")", token);
const string is_other_token = differs(R"("$$i.t")", token);
const string live_holders = filtered(h, is_live);
const string other_holders = filtered(h, all_of({is_other_token, is_live}));
const string is_holder = above(size_of(filtered(h, all_of({is_own_token, is_live}))), "0");

/// Date of a release, which is never earlier than the last fence. After a purge, the fences of the key start again from
/// the server's clock, which must then be past the last fence.
const string released_at = date(greatest_of({R"("$dx")", R"("$f")", now}));
const string has_waiters = above(R"("$w")", now);

/// Expiry of a granted lock.
string expiry(bool has_ttl)
{
    return has_ttl ? sum(now, R"("?x")") : R"("?x")";
}
string release_count(const string& if_true)
{
    return cond(all_of({if_true, has_waiters}), sum(g, "1"), g);
}

using fields = std::vector<std::pair<const char*, string>>;
string object(const fields& each)
{
    string all;
    for (const auto& [name, value] : each)
        ((((all += all.empty() ? "\"" : ",\"") += name) += "\":") += value);
    return '{' + all + '}';
}
string set(const fields& each)
{
    return R"({"$set":)" + object(each) + '}';
}

enum class answer_of : unsigned char
{
    before,
    after,
};
const string shown_fields =
    R"({"t":1,"x":1,"f":1,"e":1,"h.t":1,"h.x":1,"h.f":1,"h.e":1,"wt":1,"wx":1,"w":1,"wb":1,"o.owner":1})";
string find_and_modify(const string& query, std::initializer_list<string> stages, answer_of when = answer_of::after,
    bool upsert = false, const string& shown = shown_fields)
{
    return R"({"findAndModify":"?c","query":)" + query + R"(,"update":)" + list(stages) + R"(,"upsert":)" +
           (upsert ? "true" : "false") + R"(,"new":)" + (when == answer_of::after ? "true" : "false") +
           (shown.empty() ? "" : R"(,"fields":)" + shown) + R"(,"writeConcern":{"w":"majority","wtimeout":"?m"}})";
}

const string by_key = R"({"_id":"?k"})";
/// Matches only a document that has the form of a lock.
const string by_lock = R"({"_id":"?k","x":{"$gte":0},"hx":{"$gte":0}})";
const string by_holder = R"({"_id":"?k","t":"?t"})";
const string by_shared_holder = R"({"_id":"?k","h.t":"?t"})";
const string unset_k = R"({"$unset":"k"})";

// Creates. A missing field is less than any number, so comparisons of numbers need no default.

const string raw_x = R"("$x")";
const string raw_hx = R"("$hx")";
const string raw_f = R"("$f")";
const string root = R"("$$ROOT")";
const string next_fence = cond(binary("$gte", raw_f, now), sum(raw_f, "1"), now);

/// Whether an upsert has just inserted the document, which then has only its key.
const string is_new = equal(root, R"({"_id":"$_id"})");
/// Every document of a lock has both numbers. A missing field is less than any number, and values of other types are
/// greater. Other documents belong to other programs, and no statement may change them.
const string has_numbers = all_of({binary("$gte", raw_x, "0"), binary("$gte", raw_hx, "0")});
const string is_lock_document = either(
    all_of({has_numbers, binary("$lte", greatest_of({raw_x, raw_hx}), R"({"$numberLong":"9223372036854775807"})")}),
    is_new);
/// A change that servers forbid. It makes a statement fail, so that the reply shows which statements have changed
/// nothing.
const string forced_error = R"({"_id":{"$numberLong":"0"}})";

/// Whether a greater fence exists. If there is none, nothing is granted, and the reply contains the unchanged document.
const string has_next_fence = below(raw_f, R"({"$numberLong":")" + std::to_string(max_fence) + "\"}");

/// Whether the request is not too late, a greater fence exists, and the token is not refused.
string may_be_granted(const string& who)
{
    const auto refused =
        all_of({above(R"("$dx")", now), above(size_of(filtered(d, all_of({equal(R"("$$i.t")", who), is_live}))), "0")});
    return all_of({below(now, R"("?l")"), has_next_fence, R"({"$not":[)" + refused + "]}"});
}

string with(const string& changes)
{
    return R"({"$mergeObjects":[)" + root + ',' + changes + "]}";
}
string replace_with(const string& by)
{
    return R"({"$replaceWith":)" + by + '}';
}
/// A create that is refused leaves the document of a free lock, so that every document has the form of a lock.
const string document_after_refusal = cond(is_new,
    with(object({{"t", "null"}, {"x", none}, {"o", "null"}, {"h", "[]"}, {"hx", none}, {"p", released_at}})), root);

string create(const string& free, const string& grant, const string& otherwise)
{
    return replace_with(cond(is_lock_document,
        cond(may_be_granted(token), cond(free, with(grant), otherwise), document_after_refusal), forced_error));
}
string as_command(const string& create)
{
    return find_and_modify(by_key, {create}, answer_of::after, true);
}
/// A statement of an update.
string statement(const string& stage)
{
    return R"({"q":)" + by_key + R"(,"u":[)" + stage + R"(],"upsert":true})";
}

const string mark_is_due = below(w, sum(now, "30000"));
const string waiters_mark = cond(mark_is_due, sum(now, "60000"), w);
/// Name of the adapter that waits. '*' stands for several adapters, until one of them renews the mark.
const string waiters_name = cond(either(mark_is_due, equal(if_null("wb", "null"), R"("?v")")), R"("?v")", R"("*")");

string create_exclusive(bool queues, bool has_ttl)
{
    const auto again = all_of({equal(R"("$t")", token), below(R"("$e")", number)});
    const auto free = all_of({either(binary("$lte", raw_x, now), again),
        either(binary("$lte", raw_hx, now), equal(size_of(live_holders), "0"))});
    const auto is_writer = equal(wt_or_null, token);
    // Readers hold the lock, and no other writer waits.
    const auto intends = all_of({above(raw_hx, now), either(binary("$lte", wx, now), is_writer)});
    const fields held{{"t", token}, {"x", expiry(has_ttl)}, {"f", next_fence}, {"o", literal_owner}, {"a", now},
        {"r", "null"}, {"e", number}, {"h", "[]"}, {"hx", none}, {"p", "null"}};
    if (!queues)
        return create(free, object(held), root);
    auto by_queue = std::vector(held);
    by_queue.insert(by_queue.end(), {{"wt", cond(is_writer, "null", wt_or_null)}, {"wx", cond(is_writer, none, wx)}});
    return create(free, object(by_queue),
        with(object({{"w", waiters_mark}, {"wb", waiters_name}, {"wt", cond(intends, token, wt_or_null)},
            {"wx", cond(intends, sum(now, "15000"), wx)}})));
}

// First requests: no document contains the token yet.

string first_holder(const string& who, const string& fence, bool has_ttl)
{
    return object({{"t", who}, {"x", expiry(has_ttl)}, {"f", fence}, {"o", literal_owner}, {"a", now}, {"r", "null"},
        {"e", number}, {"h", "[]"}, {"hx", none}, {"p", "null"}});
}
string create_first_exclusive(bool marks, bool has_ttl)
{
    return create(all_of({binary("$lte", raw_x, now), binary("$lte", raw_hx, now)}),
        first_holder(token, next_fence, has_ttl),
        marks ? with(object({{"w", waiters_mark}, {"wb", waiters_name}})) : root);
}

string create_shared(bool queues, bool has_ttl)
{
    const auto again = above(size_of(filtered(h, all_of({is_own_token, is_live, below(R"("$$i.e")", number)}))), "0");
    const auto room = all_of({below(size_of(live_holders), R"("?n")"), binary("$lte", R"("$wx")", now),
        equal(size_of(filtered(h, all_of({is_own_token, is_live}))), "0")});
    const auto free = all_of({binary("$lte", raw_x, now), either(again, room)});
    const auto end = expiry(has_ttl);
    const auto holder = '[' +
                        object({{"t", token}, {"x", end}, {"f", next_fence}, {"o", literal_owner}, {"a", now},
                            {"r", "null"}, {"e", number}}) +
                        ']';
    return create(free,
        object({{"t", "null"}, {"x", none}, {"f", next_fence}, {"o", "null"},
            {"h", binary("$concatArrays", other_holders, holder)}, {"hx", greatest_of({hx, end})}, {"p", "null"}}),
        queues ? with(object({{"w", waiters_mark}, {"wb", waiters_name}})) : root);
}

// Several shared claims of one key. The temporary field `k` contains the number of holders, or the maximum if no claim
// may be granted.

/// A literal, so that the server does not calculate it for each holder.
const string tokens = R"({"$literal":"?a"})";

string several_holder(const string& who, const string& place, bool has_ttl)
{
    const auto holder = object({{"t", who}, {"x", expiry(has_ttl)}, {"f", sum(next_fence, place)}, {"o", literal_owner},
        {"a", now}, {"r", "null"}, {"e", number}});
    return cond(below(sum(R"("$k")", place), R"("?n")"), '[' + holder + ']', "[]");
}

/// Returns the stages of a pipeline.
string create_several(bool queues, bool has_ttl, const string& who, const string& count, const string& holders)
{
    const auto named = binary("$in", R"("$$i.t")", who);
    const auto may_be = all_of({below(now, R"("?l")"), is_lock_document, has_next_fence,
        equal(size_of(filtered(d, named)), "0"), equal(size_of(filtered(h, named)), "0")});
    const auto free = all_of({binary("$lte", raw_x, now), binary("$lte", R"("$wx")", now)});
    const auto counted =
        replace_with(cond(may_be, with(object({{"k", cond(free, size_of(live_holders), R"("?n")")}})), forced_error));
    const auto joined_by = binary("$concatArrays", live_holders, R"({"$concatArrays":)" + holders + '}');
    const auto granted = replace_with(cond(below(R"("$k")", R"("?n")"),
        with(object({{"t", "null"}, {"x", none}, {"f", sum(next_fence, count)}, {"o", "null"}, {"h", joined_by},
            {"hx", greatest_of({hx, expiry(has_ttl)})}, {"p", "null"}})),
        root));
    const auto marked = replace_with(cond(binary("$lte", sum(R"("$k")", count), R"("?n")"), root,
        with(object({{"w", waiters_mark}, {"wb", waiters_name}}))));
    return counted + ',' + granted + ',' + (queues ? marked + ',' : "") + unset_k;
}
string create_several(bool queues, bool has_ttl)
{
    return create_several(queues, has_ttl, tokens, R"("?q")", R"("?h")");
}
/// Counter after the release of a held lock. It grows only if a claim waits, because its change notifies the waiters.
const string release_count_if_held = cond(has_waiters, sum(g, "1"), R"("$g")");

string released_exclusive()
{
    return object({{"t", "null"}, {"x", none}, {"o", "null"}, {"p", released_at}, {"g", release_count_if_held}});
}
string release_exclusive()
{
    return find_and_modify(by_holder, {replace_with(cond(above(raw_x, now), with(released_exclusive()), root))});
}

string release_shared()
{
    const auto was_last = equal(size_of(other_holders), "0");
    return find_and_modify(by_shared_holder,
        {set({{"k", is_holder}}),
            set({{"h", cond(R"("$k")", other_holders, R"("$h")")},
                {"hx", cond(all_of({R"("$k")", was_last}), none, R"("$hx")")},
                {"p", cond(all_of({R"("$k")", was_last}), released_at, R"("$p")")}, {"g", release_count(R"("$k")")}}),
            unset_k});
}

string done_or_failed(const string& may_be, const string& changes)
{
    return statement(replace_with(cond(may_be, with(changes), forced_error)));
}
string join_first_exclusive(bool has_ttl, const string& who = token, const string& fence = R"("?f")")
{
    // The expiry of a refusal is not checked: a token is refused only after its first request was sent, so a first
    // request with a refused token is always too late.
    const auto refused = binary("$in", who, R"({"$map":{"input":)" + d + R"(,"as":"i","in":"$$i.t"}})");
    return done_or_failed(
        all_of({below(now, R"("?l")"), either(has_numbers, is_new), binary("$lte", greatest_of({raw_x, raw_hx}), now),
            below(raw_f, fence), R"({"$not":[)" + refused + "]}"}),
        first_holder(who, fence, has_ttl));
}
string join_release_exclusive(const string& who = token)
{
    return done_or_failed(all_of({equal(R"("$t")", who), above(raw_x, now)}), released_exclusive());
}
string join_release_shared()
{
    const auto was_last = equal(size_of(other_holders), "0");
    return done_or_failed(
        is_holder, object({{"h", other_holders}, {"hx", cond(was_last, none, hx)},
                       {"p", cond(was_last, released_at, if_null("p", "null"))}, {"g", release_count_if_held}}));
}
string release_several(const string& who, const string& count)
{
    const auto named = binary("$in", R"("$$i.t")", who);
    const auto others = filtered(h, all_of({R"({"$not":[)" + named + "]}", is_live}));
    const auto was_last = equal(size_of(others), "0");
    return replace_with(cond(equal(size_of(filtered(h, all_of({named, is_live}))), count),
        with(object({{"h", others}, {"hx", cond(was_last, none, hx)},
            {"p", cond(was_last, released_at, if_null("p", "null"))}, {"g", release_count_if_held}})),
        forced_error));
}
string with_fields(const string& changed)
{
    return R"({"q":)" + by_key + R"(,"u":{"$set":)" + changed + "}}";
}
string check_of(std::initializer_list<string> statements)
{
    return R"({"update":"?c","updates":)" + list(statements) +
           R"(,"ordered":false,"writeConcern":{"w":"majority","wtimeout":"?m"}})";
}
string check_join()
{
    const string another = R"("?u")";
    const auto with_later_fence = join_first_exclusive(true, another, R"("?l")");
    const auto both_share = statement(create_several(true, true, R"({"$literal":["?t","?u"]})", "2",
        list({several_holder(token, "0", true), several_holder(another, "1", true)})));
    return check_of({// There is no document at first. Then one token holds the lock.
        join_release_exclusive(another), join_first_exclusive(true), join_release_exclusive(another),
        join_first_exclusive(true, another), join_release_exclusive(),
        // The lock is free, but is not granted with a fence that was used before. Further below, it is not granted
        // while there are readers, nor to a refused token.
        join_first_exclusive(true, another),
        // There is room for one of two claims in a statement. It becomes a holder, and the other does not.
        both_share, both_share, statement(release_several(R"({"$literal":["?t","?u"]})", "2")),
        statement(release_several(R"({"$literal":["?u"]})", "1")),
        statement(release_several(R"({"$literal":["?t"]})", "1")), with_fields(R"({"hx":"?l"})"), with_later_fence,
        with_fields(R"({"hx":0,"d":[{"t":"?t","x":0},{"t":"?u","x":"?l"}]})"), with_later_fence,
        // The document belongs to another program.
        R"({"q":)" + by_key + R"(,"u":{"f":"?f","n":1}})", with_later_fence, statement(create_shared(false, true))});
}

string extend_exclusive(bool has_ttl)
{
    const auto held = all_of({above(x, now), below(now, R"("?l")"), below(e, number)});
    const auto end = expiry(has_ttl);
    return find_and_modify(by_holder,
        {set({{"x", cond(held, end, R"("$x")")}, {"r", cond(held, now, R"("$r")")},
            {"e", cond(held, number, R"("$e")")}, {"g", release_count(all_of({held, below(end, R"("$x")")}))}})});
}

/// \param end new expiry of the holder
/// \param renewed new time of the last extension
/// \param shorter condition for an expiry that becomes earlier; empty: never
string extend_shared(const string& end, const string& renewed, const string& shorter)
{
    const auto held = all_of({is_own_token, is_live, below(now, R"("?l")"), below(R"("$$i.e")", number)});
    const auto changed =
        R"({"t":"$$i.t","x":)" + end + R"(,"f":"$$i.f","o":"$$i.o","a":"$$i.a","r":)" + renewed + R"(,"e":"?e"})";
    return find_and_modify(by_shared_holder,
        {set({{"h", R"({"$map":{"input":"$h","as":"i","in":)" + cond(held, changed, R"("$$i")") + "}}"},
            {"hx", shorter.empty() ? hx : greatest_of({hx, end})},
            {"g", shorter.empty() ? g : release_count(above(size_of(filtered(h, all_of({held, shorter}))), "0"))}})});
}
string extend_shared(bool has_ttl)
{
    const auto end = expiry(has_ttl);
    return extend_shared(end, now, below(end, R"("$$i.x")"));
}

string extend_group(const string& query, const string& stage)
{
    return R"({"q":)" + query + R"(,"u":[)" + stage + "]}";
}
string extend_group_exclusive()
{
    const auto end = expiry(true);
    const auto sooner = all_of({above(x, now), below(x, end)});
    return extend_group(by_holder, set({{"x", cond(sooner, end, R"("$x")")}, {"r", cond(sooner, now, R"("$r")")}}));
}

string extend_group_shared()
{
    const auto end = expiry(true);
    const auto sooner = all_of({is_own_token, is_live, below(R"("$$i.x")", end)});
    const auto changed =
        R"({"t":"$$i.t","x":)" + end + R"(,"f":"$$i.f","o":"$$i.o","a":"$$i.a","r":)" + now + R"(,"e":"$$i.e"})";
    const auto any = above(size_of(filtered(h, sooner)), "0");
    return extend_group(by_shared_holder,
        set({{"h", R"({"$map":{"input":"$h","as":"i","in":)" + cond(sooner, changed, R"("$$i")") + "}}"},
            {"hx", cond(any, greatest_of({hx, end}), hx)}}));
}

string touch_exclusive()
{
    const auto held = all_of({above(x, now), below(now, R"("?l")"), below(e, number)});
    return find_and_modify(by_holder, {set({{"e", cond(held, number, R"("$e")")}})});
}

const string date_if_free = cond(either(above(x, "0"), above(hx, "0")), "null", released_at);

string withdraw(bool refuses)
{
    const auto held = equal(t_or_null, token);
    const auto is_writer = equal(wt_or_null, token);
    const auto refused_now = filtered(d, all_of({is_other_token, is_live}));
    const auto refused = R"([{"t":"?t","x":"?b"}])";
    const auto taken_back = set({{"t", cond(held, "null", t_or_null)}, {"x", cond(held, none, x)},
        {"o", cond(held, "null", o_or_null)}, {"f", f}, {"h", other_holders},
        {"hx", cond(equal(size_of(other_holders), "0"), none, hx)}, {"wt", cond(is_writer, "null", wt_or_null)},
        {"wx", cond(is_writer, none, wx)}, {"d", refuses ? binary("$concatArrays", refused_now, refused) : d},
        {"dx", refuses ? greatest_of({dx, R"("?b")"}) : dx},
        {"g", release_count(either(held, either(is_writer, is_holder)))}});
    const auto dated = set({{"p", date_if_free}});
    if (!refuses)
        return find_and_modify(by_lock, {taken_back, dated}, answer_of::before);
    return find_and_modify(
        by_key, {replace_with(cond(is_lock_document, root, forced_error)), taken_back, dated}, answer_of::before, true);
}

string hand_over(bool has_ttl)
{
    const auto held = above(x, now);
    const auto end = expiry(has_ttl);
    const string next = R"("?u")";
    const string granted = R"("$k")";
    return find_and_modify(by_holder,
        {set({{"k", may_be_granted(next)}}),
            set({{"t", cond(granted, next, cond(held, "null", t_or_null))},
                {"x", cond(granted, end, cond(held, none, x))}, {"f", cond(granted, next_fence, f)},
                {"o", cond(granted, literal_owner, "null")}, {"a", cond(granted, now, R"("$a")")},
                {"r", cond(granted, "null", R"("$r")")}, {"e", cond(held, none, R"({"$numberLong":"-1"})")},
                {"p", cond(granted, "null", released_at)}, {"g", cond(granted, g, release_count(held))}}),
            unset_k},
        answer_of::after);
}

const string adopter = R"("?u")";
const string is_adopter = equal(R"("$$i.t")", adopter);
const string was_adopted = R"("$k")";

string adopt_exclusive(bool has_ttl)
{
    const auto again = all_of({equal(R"("$t")", adopter), below(e, number)});
    return find_and_modify(R"({"_id":"?k","t":{"$in":["?t","?u"]}})",
        {set({{"k", all_of({above(x, now), either(equal(R"("$t")", token), again), may_be_granted(adopter)})}}),
            set({{"t", cond(was_adopted, adopter, t_or_null)}, {"x", cond(was_adopted, expiry(has_ttl), x)},
                {"f", cond(was_adopted, next_fence, f)}, {"o", cond(was_adopted, literal_owner, o_or_null)},
                {"a", cond(was_adopted, now, R"("$a")")}, {"r", cond(was_adopted, "null", R"("$r")")},
                {"e", cond(was_adopted, number, e)}, {"g", release_count(was_adopted)}}),
            unset_k});
}

string adopt_shared(bool has_ttl)
{
    const auto again = all_of({is_adopter, below(R"("$$i.e")", number)});
    const auto end = expiry(has_ttl);
    const auto holder = '[' +
                        object({{"t", adopter}, {"x", end}, {"f", next_fence}, {"o", literal_owner}, {"a", now},
                            {"r", "null"}, {"e", number}}) +
                        ']';
    const auto others = filtered(h, all_of({is_other_token, differs(R"("$$i.t")", adopter), is_live}));
    return find_and_modify(R"({"_id":"?k","h.t":{"$in":["?t","?u"]}})",
        {set({{"k", all_of({above(size_of(filtered(h, all_of({either(is_own_token, again), is_live}))), "0"),
                        may_be_granted(adopter)})}}),
            set({{"h", cond(was_adopted, binary("$concatArrays", others, holder), h)},
                {"hx", cond(was_adopted, greatest_of({hx, end}), hx)}, {"f", cond(was_adopted, next_fence, f)},
                {"g", release_count(was_adopted)}}),
            unset_k});
}

string remove_named()
{
    const string named = R"("?a")";
    const auto is_named = binary("$in", t_or_null, named);
    const auto others = filtered(h, R"({"$not":[)" + binary("$in", R"("$$i.t")", named) + "]}");
    return find_and_modify(R"({"_id":"?k","$or":[{"t":{"$in":"?a"}},{"h.t":{"$in":"?a"}}]})",
        {set({{"t", cond(is_named, "null", t_or_null)}, {"x", cond(is_named, none, x)},
             {"o", cond(is_named, "null", o_or_null)}, {"h", others},
             {"hx", cond(equal(size_of(others), "0"), none, hx)}, {"g", release_count("true")}}),
            set({{"p", date_if_free}})},
        answer_of::before, false, "");
}

string remove_expired()
{
    const auto over = binary("$lte", x, now);
    const auto is_free = all_of({over, equal(size_of(live_holders), "0")});
    return find_and_modify(by_lock,
        {set({{"t", cond(over, "null", t_or_null)}, {"x", cond(over, none, x)}, {"o", cond(over, "null", o_or_null)},
            {"h", live_holders}, {"hx", cond(equal(size_of(live_holders), "0"), none, hx)},
            {"p", cond(is_free, if_null("p", released_at), "null")}, {"g", release_count("true")}})},
        answer_of::before, false, "");
}

commands::create both(const string& with_ttl, const string& without)
{
    return {command_template(with_ttl), command_template(without)};
}

commands::create both(string (*create)(bool queues, bool has_ttl), bool queues, string (*form)(const string&))
{
    return both(form(create(queues, true)), form(create(queues, false)));
}

commands make_all()
{
    return {
        .exclusive_queues = both(&create_exclusive, true, &as_command),
        .exclusive_once = both(&create_exclusive, false, &as_command),
        .shared_queues = both(&create_shared, true, &as_command),
        .shared_once = both(&create_shared, false, &as_command),
        .first_exclusive_queues = both(&create_first_exclusive, true, &as_command),
        .first_exclusive_once = both(&create_first_exclusive, false, &as_command),
        .join_first_exclusive = both(join_first_exclusive(true), join_first_exclusive(false)),
        .join_shared_queues = both(&create_shared, true, &statement),
        .join_shared_once = both(&create_shared, false, &statement),
        .join_several_queues = both(&create_several, true, &statement),
        .join_several_once = both(&create_several, false, &statement),
        .several_holder = both(several_holder(token, R"("?i")", true), several_holder(token, R"("?i")", false)),
        .join_release_exclusive = command_template(join_release_exclusive()),
        .join_release_shared = command_template(join_release_shared()),
        .join_release_several = command_template(statement(release_several(tokens, R"("?q")"))),
        .check_join = command_template(check_join()),
        .check_code = command_template(check_of({join_release_exclusive(R"("?u")")})),
        .find_options = command_template(
            R"({"projection":)" + shown_fields + R"(,"limit":"?n","batchSize":"?n","singleBatch":true})"),
        .release_exclusive = command_template(release_exclusive()),
        .release_shared = command_template(release_shared()),
        .extend_group_exclusive = command_template(extend_group_exclusive()),
        .extend_group_shared = command_template(extend_group_shared()),
        .extend_exclusive = both(extend_exclusive(true), extend_exclusive(false)),
        .extend_shared = both(extend_shared(true), extend_shared(false)),
        .touch_exclusive = command_template(touch_exclusive()),
        .touch_shared = command_template(extend_shared(R"("$$i.x")", R"("$$i.r")", "")),
        .withdraw = command_template(withdraw(false)),
        .refuse = command_template(withdraw(true)),
        .hand_over = both(hand_over(true), hand_over(false)),
        .adopt_exclusive = both(adopt_exclusive(true), adopt_exclusive(false)),
        .adopt_shared = both(adopt_shared(true), adopt_shared(false)),
        .remove_named = command_template(remove_named()),
        .remove_expired = command_template(remove_expired()),
        .forget = command_template(
            R"({"delete":"?c","deletes":[{"q":{"p":{"$lt":"?p"},"x":0,"hx":0,"h":[],)"
            R"("w":{"$not":{"$gt":"?y"}},"wx":{"$not":{"$gt":"?y"}},"dx":{"$not":{"$gt":"?y"}}},)"
            R"("limit":0},{"q":{"_id.c":"check","f":{"$lt":"?z"}},"limit":0}],"writeConcern":{"w":"majority","wtimeout":"?m"}})"),
        .confirm = command_template(R"({"update":"?c","updates":[{"q":{"_id":{"c":"confirm"}},"u":{"$inc":{"n":1}},)"
                                    R"("upsert":true}],"writeConcern":{"w":"majority","wtimeout":"?m"}})"),
        .watch = command_template(R"({"aggregate":"?c","pipeline":[{"$changeStream":{}},{"$match":)"
                                  R"({"updateDescription.updatedFields.g":{"$exists":true}}},)"
                                  R"({"$project":{"documentKey":1}}],"cursor":{"batchSize":0}})"),
    };
}

} // namespace

const commands& commands::get()
{
    static const commands all = make_all();
    return all;
}

} // namespace colock::mongo::detail
