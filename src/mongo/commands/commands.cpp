// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/commands.hpp"

#include "mongo/commands/lock_view.hpp"

#include <string>
#include <utility>
#include <vector>

namespace colock::mongo::detail {

namespace {

using std::string;

// Expressions of an update's pipeline.

const string now = R"({"$toLong":"$$NOW"})";
const string none = R"({"$numberLong":"0"})";

string cond(const string& test, const string& then, const string& otherwise)
{
    return R"({"$cond":[)" + test + ',' + then + ',' + otherwise + "]}";
}
string two(const char* what, const string& left, const string& right)
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
    return two("$gt", left, right);
}
string below(const string& left, const string& right)
{
    return two("$lt", left, right);
}
string equal(const string& left, const string& right)
{
    return two("$eq", left, right);
}
string either(const string& left, const string& right)
{
    return two("$or", left, right);
}
string differs(const string& left, const string& right)
{
    return two("$ne", left, right);
}
string sum(const string& left, const string& right)
{
    return two("$add", left, right);
}
/// Of numbers, or of what is not there, which is less than any.
string greatest_of(std::initializer_list<string> each)
{
    return R"({"$max":)" + list(each) + '}';
}
string or_else(const string& field, const string& otherwise)
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
/// Those for which it holds; each is `$$i`.
string those(const string& array, const string& test)
{
    return R"({"$filter":{"input":)" + array + R"(,"as":"i","cond":)" + test + "}}";
}

const string x = or_else("x", none);
const string f = or_else("f", none);
const string e = or_else("e", none);
const string hx = or_else("hx", none);
const string wx = or_else("wx", none);
const string w = or_else("w", none);
const string g = or_else("g", none);
const string dx = or_else("dx", none);
const string h = or_else("h", "[]");
const string d = or_else("d", "[]");
const string kept_t = or_else("t", "null");
const string kept_o = or_else("o", "null");
const string kept_wt = or_else("wt", "null");

const string token = R"("?t")";
const string number = R"("?e")";
const string literal_owner = R"({"$literal":"?o"})";

const string lives = above(R"("$$i.x")", now);
const string is_ours = equal(R"("$$i.t")", token);
const string is_anothers = differs(R"("$$i.t")", token);
const string live_holders = those(h, lives);
const string other_holders = those(h, all_of({is_anothers, lives}));
const string is_holder = above(size_of(those(h, all_of({is_ours, lives}))), "0");

/// Not before the fence: a key that was purged begins above the clock.
const string released_at = date(greatest_of({R"("$dx")", R"("$f")", now}));
const string somebody_waits = above(R"("$w")", now);

/// When what is granted expires.
string expiry(bool has_ttl)
{
    return has_ttl ? sum(now, R"("?x")") : R"("?x")";
}
string told(const string& if_true)
{
    return cond(all_of({if_true, somebody_waits}), sum(g, "1"), g);
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
const string shown_of_locks =
    R"({"t":1,"x":1,"f":1,"e":1,"h.t":1,"h.x":1,"h.f":1,"h.e":1,"wt":1,"wx":1,"w":1,"wb":1,"o.owner":1})";
string find_and_modify(const string& query, std::initializer_list<string> stages, answer_of when = answer_of::after,
    bool upsert = false, const string& shown = shown_of_locks)
{
    return R"({"findAndModify":"?c","query":)" + query + R"(,"update":)" + list(stages) + R"(,"upsert":)" +
           (upsert ? "true" : "false") + R"(,"new":)" + (when == answer_of::after ? "true" : "false") +
           (shown.empty() ? "" : R"(,"fields":)" + shown) + R"(,"writeConcern":{"w":"majority","wtimeout":"?m"}})";
}

const string by_key = R"({"_id":"?k"})";
/// Where the document has the form of a lock's.
const string by_lock = R"({"_id":"?k","x":{"$gte":0},"hx":{"$gte":0}})";
const string by_holder = R"({"_id":"?k","t":"?t"})";
const string by_shared_holder = R"({"_id":"?k","h.t":"?t"})";
const string forget_k = R"({"$unset":"k"})";

// A create. What is not there is less than any number; so it costs no word where numbers are compared.

const string plain_x = R"("$x")";
const string plain_hx = R"("$hx")";
const string plain_f = R"("$f")";
const string root = R"("$$ROOT")";
const string grants_next = cond(two("$gte", plain_f, now), sum(plain_f, "1"), now);

/// A document that an upsert has just made has its key alone.
const string is_new = equal(root, R"({"_id":"$_id"})");
/// Every document of a lock has both numbers. What is missing is less than any number, and other types are greater.
/// Other documents belong to other programs: no statement may change them.
const string has_numbers = all_of({two("$gte", plain_x, "0"), two("$gte", plain_hx, "0")});
const string is_a_locks = either(
    all_of({has_numbers, two("$lte", greatest_of({plain_x, plain_hx}), R"({"$numberLong":"9223372036854775807"})")}),
    is_new);
/// What no update may do: so a server says which statement has changed nothing.
const string an_error = R"({"_id":{"$numberLong":"0"}})";

/// Where it has not, the document is answered as it is.
const string has_next_fence = below(plain_f, R"({"$numberLong":")" + std::to_string(max_fence) + "\"}");

/// It is too late, or was taken back.
string may_be_granted(const string& who)
{
    const auto refused =
        all_of({above(R"("$dx")", now), above(size_of(those(d, all_of({equal(R"("$$i.t")", who), lives}))), "0")});
    return all_of({below(now, R"("?l")"), has_next_fence, R"({"$not":[)" + refused + "]}"});
}

string with(const string& changes)
{
    return R"({"$mergeObjects":[)" + root + ',' + changes + "]}";
}
string replaced(const string& by)
{
    return R"({"$replaceWith":)" + by + '}';
}
/// A create that is refused leaves the document of a free lock, so that every document has the form of a lock's.
const string left_by_refusal = cond(is_new,
    with(object({{"t", "null"}, {"x", none}, {"o", "null"}, {"h", "[]"}, {"hx", none}, {"p", released_at}})), root);

string create(const string& free, const string& grant, const string& otherwise)
{
    return replaced(
        cond(is_a_locks, cond(may_be_granted(token), cond(free, with(grant), otherwise), left_by_refusal), an_error));
}
string alone(const string& create)
{
    return find_and_modify(by_key, {create}, answer_of::after, true);
}
/// One of the statements of an update.
string joined(const string& stage)
{
    return R"({"q":)" + by_key + R"(,"u":[)" + stage + R"(],"upsert":true})";
}

const string mark_is_due = below(w, sum(now, "30000"));
const string waiters_mark = cond(mark_is_due, sum(now, "60000"), w);
/// Which process waits; several are '*', until one of them marks it anew.
const string waiters_name = cond(either(mark_is_due, equal(or_else("wb", "null"), R"("?v")")), R"("?v")", R"("*")");

string create_exclusive(bool queues, bool has_ttl)
{
    const auto again = all_of({equal(R"("$t")", token), below(R"("$e")", number)});
    const auto free = all_of({either(two("$lte", plain_x, now), again),
        either(two("$lte", plain_hx, now), equal(size_of(live_holders), "0"))});
    const auto is_writer = equal(kept_wt, token);
    // Readers are in the way, and no other writer waits.
    const auto intends = all_of({above(plain_hx, now), either(two("$lte", wx, now), is_writer)});
    const fields held{{"t", token}, {"x", expiry(has_ttl)}, {"f", grants_next}, {"o", literal_owner}, {"a", now},
        {"r", "null"}, {"e", number}, {"h", "[]"}, {"hx", none}, {"p", "null"}};
    if (!queues)
        return create(free, object(held), root);
    auto by_queue = std::vector(held);
    by_queue.insert(by_queue.end(), {{"wt", cond(is_writer, "null", kept_wt)}, {"wx", cond(is_writer, none, wx)}});
    return create(free, object(by_queue),
        with(object({{"w", waiters_mark}, {"wb", waiters_name}, {"wt", cond(intends, token, kept_wt)},
            {"wx", cond(intends, sum(now, "15000"), wx)}})));
}

// By a token that is nowhere yet.

string first_holder(const string& who, const string& fence, bool has_ttl)
{
    return object({{"t", who}, {"x", expiry(has_ttl)}, {"f", fence}, {"o", literal_owner}, {"a", now}, {"r", "null"},
        {"e", number}, {"h", "[]"}, {"hx", none}, {"p", "null"}});
}
string create_first_exclusive(bool marks, bool has_ttl)
{
    return create(all_of({two("$lte", plain_x, now), two("$lte", plain_hx, now)}),
        first_holder(token, grants_next, has_ttl),
        marks ? with(object({{"w", waiters_mark}, {"wb", waiters_name}})) : root);
}

string create_shared(bool queues, bool has_ttl)
{
    const auto again = above(size_of(those(h, all_of({is_ours, lives, below(R"("$$i.e")", number)}))), "0");
    const auto room = all_of({below(size_of(live_holders), R"("?n")"), two("$lte", R"("$wx")", now),
        equal(size_of(those(h, all_of({is_ours, lives}))), "0")});
    const auto free = all_of({two("$lte", plain_x, now), either(again, room)});
    const auto end = expiry(has_ttl);
    const auto holder = '[' +
                        object({{"t", token}, {"x", end}, {"f", grants_next}, {"o", literal_owner}, {"a", now},
                            {"r", "null"}, {"e", number}}) +
                        ']';
    return create(free,
        object({{"t", "null"}, {"x", none}, {"f", grants_next}, {"o", "null"},
            {"h", two("$concatArrays", other_holders, holder)}, {"hx", greatest_of({hx, end})}, {"p", "null"}}),
        queues ? with(object({{"w", waiters_mark}, {"wb", waiters_name}})) : root);
}

// Several shared claims of one key. `k` is the number of holders, or as many as may be, where nobody may join them.

/// A constant: a server need not calculate it for each holder.
const string tokens = R"({"$literal":"?a"})";

string several_holder(const string& who, const string& place, bool has_ttl)
{
    const auto holder = object({{"t", who}, {"x", expiry(has_ttl)}, {"f", sum(grants_next, place)},
        {"o", literal_owner}, {"a", now}, {"r", "null"}, {"e", number}});
    return cond(below(sum(R"("$k")", place), R"("?n")"), '[' + holder + ']', "[]");
}

/// Stages of a pipeline.
string create_several(bool queues, bool has_ttl, const string& who, const string& count, const string& holders)
{
    const auto named = two("$in", R"("$$i.t")", who);
    const auto may_be = all_of({below(now, R"("?l")"), is_a_locks, has_next_fence, equal(size_of(those(d, named)), "0"),
        equal(size_of(those(h, named)), "0")});
    const auto free = all_of({two("$lte", plain_x, now), two("$lte", R"("$wx")", now)});
    const auto counted =
        replaced(cond(may_be, with(object({{"k", cond(free, size_of(live_holders), R"("?n")")}})), an_error));
    const auto joined_by = two("$concatArrays", live_holders, R"({"$concatArrays":)" + holders + '}');
    const auto granted = replaced(cond(below(R"("$k")", R"("?n")"),
        with(object({{"t", "null"}, {"x", none}, {"f", sum(grants_next, count)}, {"o", "null"}, {"h", joined_by},
            {"hx", greatest_of({hx, expiry(has_ttl)})}, {"p", "null"}})),
        root));
    const auto marked = replaced(cond(two("$lte", sum(R"("$k")", count), R"("?n")"), root,
        with(object({{"w", waiters_mark}, {"wb", waiters_name}}))));
    return counted + ',' + granted + ',' + (queues ? marked + ',' : "") + forget_k;
}
string create_several(bool queues, bool has_ttl)
{
    return create_several(queues, has_ttl, tokens, R"("?q")", R"("?h")");
}
/// Where it is held: an answer tells the next waiter.
const string told_once = cond(somebody_waits, sum(g, "1"), R"("$g")");

string released_exclusive()
{
    return object({{"t", "null"}, {"x", none}, {"o", "null"}, {"p", released_at}, {"g", told_once}});
}
string release_exclusive()
{
    return find_and_modify(by_holder, {replaced(cond(above(plain_x, now), with(released_exclusive()), root))});
}

string release_shared()
{
    const auto was_last = equal(size_of(other_holders), "0");
    return find_and_modify(by_shared_holder,
        {set({{"k", is_holder}}),
            set({{"h", cond(R"("$k")", other_holders, R"("$h")")},
                {"hx", cond(all_of({R"("$k")", was_last}), none, R"("$hx")")},
                {"p", cond(all_of({R"("$k")", was_last}), released_at, R"("$p")")}, {"g", told(R"("$k")")}}),
            forget_k});
}

string done_or_failed(const string& may_be, const string& changes)
{
    return joined(replaced(cond(may_be, with(changes), an_error)));
}
string join_first_exclusive(bool has_ttl, const string& who = token, const string& fence = R"("?f")")
{
    // Until when does not matter: nobody asks for the first time with a token that was refused.
    const auto refused = two("$in", who, R"({"$map":{"input":)" + d + R"(,"as":"i","in":"$$i.t"}})");
    return done_or_failed(
        all_of({below(now, R"("?l")"), either(has_numbers, is_new), two("$lte", greatest_of({plain_x, plain_hx}), now),
            below(plain_f, fence), R"({"$not":[)" + refused + "]}"}),
        first_holder(who, fence, has_ttl));
}
string join_release_exclusive(const string& who = token)
{
    return done_or_failed(all_of({equal(R"("$t")", who), above(plain_x, now)}), released_exclusive());
}
string join_release_shared()
{
    const auto was_last = equal(size_of(other_holders), "0");
    return done_or_failed(is_holder, object({{"h", other_holders}, {"hx", cond(was_last, none, hx)},
                                         {"p", cond(was_last, released_at, or_else("p", "null"))}, {"g", told_once}}));
}
string release_several(const string& who, const string& count)
{
    const auto named = two("$in", R"("$$i.t")", who);
    const auto others = those(h, all_of({R"({"$not":[)" + named + "]}", lives}));
    const auto was_last = equal(size_of(others), "0");
    return replaced(cond(equal(size_of(those(h, all_of({named, lives}))), count),
        with(object({{"h", others}, {"hx", cond(was_last, none, hx)},
            {"p", cond(was_last, released_at, or_else("p", "null"))}, {"g", told_once}})),
        an_error));
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
    const auto anew = join_first_exclusive(true, another, R"("?l")");
    const auto both_share = joined(create_several(true, true, R"({"$literal":["?t","?u"]})", "2",
        list({several_holder(token, "0", true), several_holder(another, "1", true)})));
    return check_of({// Nothing is there, then one holds it.
        join_release_exclusive(another), join_first_exclusive(true), join_release_exclusive(another),
        join_first_exclusive(true, another), join_release_exclusive(),
        // It is free, but not with a fence that was given already; nor where readers are, nor for a token that
        // is refused.
        join_first_exclusive(true, another),
        // Of two that ask together one has room. It is a holder, and the other is not.
        both_share, both_share, joined(release_several(R"({"$literal":["?t","?u"]})", "2")),
        joined(release_several(R"({"$literal":["?u"]})", "1")), joined(release_several(R"({"$literal":["?t"]})", "1")),
        with_fields(R"({"hx":"?l"})"), anew, with_fields(R"({"hx":0,"d":[{"t":"?t","x":0},{"t":"?u","x":"?l"}]})"),
        anew,
        // It belongs to another program.
        R"({"q":)" + by_key + R"(,"u":{"f":"?f","n":1}})", anew, joined(create_shared(false, true))});
}

string extend_exclusive(bool has_ttl)
{
    const auto held = all_of({above(x, now), below(now, R"("?l")"), below(e, number)});
    const auto end = expiry(has_ttl);
    return find_and_modify(
        by_holder, {set({{"x", cond(held, end, R"("$x")")}, {"r", cond(held, now, R"("$r")")},
                       {"e", cond(held, number, R"("$e")")}, {"g", told(all_of({held, below(end, R"("$x")")}))}})});
}

/// \param fields of the holder whose expiry or number changes
string extend_shared(const string& end, const string& renewed, const string& shorter)
{
    const auto held = all_of({is_ours, lives, below(now, R"("?l")"), below(R"("$$i.e")", number)});
    const auto changed =
        R"({"t":"$$i.t","x":)" + end + R"(,"f":"$$i.f","o":"$$i.o","a":"$$i.a","r":)" + renewed + R"(,"e":"?e"})";
    return find_and_modify(by_shared_holder,
        {set({{"h", R"({"$map":{"input":"$h","as":"i","in":)" + cond(held, changed, R"("$$i")") + "}}"},
            {"hx", shorter.empty() ? hx : greatest_of({hx, end})},
            {"g", shorter.empty() ? g : told(above(size_of(those(h, all_of({held, shorter}))), "0"))}})});
}
string extend_shared(bool has_ttl)
{
    const auto end = expiry(has_ttl);
    return extend_shared(end, now, below(end, R"("$$i.x")"));
}

string lengthen(const string& query, const string& stage)
{
    return R"({"q":)" + query + R"(,"u":[)" + stage + "]}";
}
string lengthen_exclusive()
{
    const auto end = expiry(true);
    const auto sooner = all_of({above(x, now), below(x, end)});
    return lengthen(by_holder, set({{"x", cond(sooner, end, R"("$x")")}, {"r", cond(sooner, now, R"("$r")")}}));
}

string lengthen_shared()
{
    const auto end = expiry(true);
    const auto sooner = all_of({is_ours, lives, below(R"("$$i.x")", end)});
    const auto changed =
        R"({"t":"$$i.t","x":)" + end + R"(,"f":"$$i.f","o":"$$i.o","a":"$$i.a","r":)" + now + R"(,"e":"$$i.e"})";
    const auto any = above(size_of(those(h, sooner)), "0");
    return lengthen(by_shared_holder,
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
    const auto held = equal(kept_t, token);
    const auto is_writer = equal(kept_wt, token);
    const auto refused_now = those(d, all_of({is_anothers, lives}));
    const auto refused = R"([{"t":"?t","x":"?b"}])";
    const auto taken_back = set({{"t", cond(held, "null", kept_t)}, {"x", cond(held, none, x)},
        {"o", cond(held, "null", kept_o)}, {"f", f}, {"h", other_holders},
        {"hx", cond(equal(size_of(other_holders), "0"), none, hx)}, {"wt", cond(is_writer, "null", kept_wt)},
        {"wx", cond(is_writer, none, wx)}, {"d", refuses ? two("$concatArrays", refused_now, refused) : d},
        {"dx", refuses ? greatest_of({dx, R"("?b")"}) : dx}, {"g", told(either(held, either(is_writer, is_holder)))}});
    const auto dated = set({{"p", date_if_free}});
    if (!refuses)
        return find_and_modify(by_lock, {taken_back, dated}, answer_of::before);
    return find_and_modify(
        by_key, {replaced(cond(is_a_locks, root, an_error)), taken_back, dated}, answer_of::before, true);
}

string hand_over(bool has_ttl)
{
    const auto held = above(x, now);
    const auto end = expiry(has_ttl);
    const string next = R"("?u")";
    const string granted = R"("$k")";
    return find_and_modify(by_holder,
        {set({{"k", may_be_granted(next)}}),
            set({{"t", cond(granted, next, cond(held, "null", kept_t))}, {"x", cond(granted, end, cond(held, none, x))},
                {"f", cond(granted, grants_next, f)}, {"o", cond(granted, literal_owner, "null")},
                {"a", cond(granted, now, R"("$a")")}, {"r", cond(granted, "null", R"("$r")")},
                {"e", cond(held, none, R"({"$numberLong":"-1"})")}, {"p", cond(granted, "null", released_at)},
                {"g", cond(granted, g, told(held))}}),
            forget_k},
        answer_of::after);
}

const string adopts = R"("?u")";
const string is_adopters = equal(R"("$$i.t")", adopts);
const string was_adopted = R"("$k")";

string adopt_exclusive(bool has_ttl)
{
    const auto again = all_of({equal(R"("$t")", adopts), below(e, number)});
    return find_and_modify(R"({"_id":"?k","t":{"$in":["?t","?u"]}})",
        {set({{"k", all_of({above(x, now), either(equal(R"("$t")", token), again), may_be_granted(adopts)})}}),
            set({{"t", cond(was_adopted, adopts, kept_t)}, {"x", cond(was_adopted, expiry(has_ttl), x)},
                {"f", cond(was_adopted, grants_next, f)}, {"o", cond(was_adopted, literal_owner, kept_o)},
                {"a", cond(was_adopted, now, R"("$a")")}, {"r", cond(was_adopted, "null", R"("$r")")},
                {"e", cond(was_adopted, number, e)}, {"g", told(was_adopted)}}),
            forget_k});
}

string adopt_shared(bool has_ttl)
{
    const auto again = all_of({is_adopters, below(R"("$$i.e")", number)});
    const auto end = expiry(has_ttl);
    const auto holder = '[' +
                        object({{"t", adopts}, {"x", end}, {"f", grants_next}, {"o", literal_owner}, {"a", now},
                            {"r", "null"}, {"e", number}}) +
                        ']';
    const auto others = those(h, all_of({is_anothers, differs(R"("$$i.t")", adopts), lives}));
    return find_and_modify(R"({"_id":"?k","h.t":{"$in":["?t","?u"]}})",
        {set({{"k", all_of({above(size_of(those(h, all_of({either(is_ours, again), lives}))), "0"),
                        may_be_granted(adopts)})}}),
            set({{"h", cond(was_adopted, two("$concatArrays", others, holder), h)},
                {"hx", cond(was_adopted, greatest_of({hx, end}), hx)}, {"f", cond(was_adopted, grants_next, f)},
                {"g", told(was_adopted)}}),
            forget_k});
}

string remove_named()
{
    const string named = R"("?a")";
    const auto is_named = two("$in", kept_t, named);
    const auto others = those(h, R"({"$not":[)" + two("$in", R"("$$i.t")", named) + "]}");
    return find_and_modify(R"({"_id":"?k","$or":[{"t":{"$in":"?a"}},{"h.t":{"$in":"?a"}}]})",
        {set({{"t", cond(is_named, "null", kept_t)}, {"x", cond(is_named, none, x)},
             {"o", cond(is_named, "null", kept_o)}, {"h", others}, {"hx", cond(equal(size_of(others), "0"), none, hx)},
             {"g", told("true")}}),
            set({{"p", date_if_free}})},
        answer_of::before, false, "");
}

string remove_expired()
{
    const auto over = two("$lte", x, now);
    const auto nobody = all_of({over, equal(size_of(live_holders), "0")});
    return find_and_modify(by_lock,
        {set({{"t", cond(over, "null", kept_t)}, {"x", cond(over, none, x)}, {"o", cond(over, "null", kept_o)},
            {"h", live_holders}, {"hx", cond(equal(size_of(live_holders), "0"), none, hx)},
            {"p", cond(nobody, or_else("p", released_at), "null")}, {"g", told("true")}})},
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
        .exclusive_queues = both(&create_exclusive, true, &alone),
        .exclusive_once = both(&create_exclusive, false, &alone),
        .shared_queues = both(&create_shared, true, &alone),
        .shared_once = both(&create_shared, false, &alone),
        .first_exclusive_queues = both(&create_first_exclusive, true, &alone),
        .first_exclusive_once = both(&create_first_exclusive, false, &alone),
        .join_first_exclusive = both(join_first_exclusive(true), join_first_exclusive(false)),
        .join_shared_queues = both(&create_shared, true, &joined),
        .join_shared_once = both(&create_shared, false, &joined),
        .join_several_queues = both(&create_several, true, &joined),
        .join_several_once = both(&create_several, false, &joined),
        .several_holder = both(several_holder(token, R"("?i")", true), several_holder(token, R"("?i")", false)),
        .join_release_exclusive = command_template(join_release_exclusive()),
        .join_release_shared = command_template(join_release_shared()),
        .join_release_several = command_template(joined(release_several(tokens, R"("?q")"))),
        .check_join = command_template(check_join()),
        .check_code = command_template(check_of({join_release_exclusive(R"("?u")")})),
        .look = command_template(
            R"({"projection":)" + shown_of_locks + R"(,"limit":"?n","batchSize":"?n","singleBatch":true})"),
        .release_exclusive = command_template(release_exclusive()),
        .release_shared = command_template(release_shared()),
        .lengthen_exclusive = command_template(lengthen_exclusive()),
        .lengthen_shared = command_template(lengthen_shared()),
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
