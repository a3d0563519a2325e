// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/commands.hpp"

#include "mongo/templates/create.hpp"
#include "mongo/templates/extend.hpp"
#include "mongo/templates/lock_expressions.hpp"
#include "mongo/templates/release.hpp"
#include "mongo/templates/statements.hpp"
#include "mongo/templates/transfer.hpp"
#include "mongo/templates/write_concern.hpp"

#include <initializer_list>

namespace colock::inline v0::mongo::detail {

namespace templates {

namespace {

/// Fence of the request.
const string request_fence = R"("?f")";

string with_fields(const string& changed)
{
    return R"({"q":)" + by_key + R"(,"u":{"$set":)" + changed + "}}";
}
string check_of(std::initializer_list<string> statements)
{
    return R"({"update":"?c","updates":)" + list(statements) + R"(,"ordered":false,)" + write_concern + "}";
}
string check_batched()
{
    const string another = R"("?u")";
    const auto with_later_fence = batched_first_exclusive(true, another, R"("?l")");
    const auto both_share = statement(create_several(true, true, R"({"$literal":["?t","?u"]})", "2",
        list({several_holder(token, "0", true), several_holder(another, "1", true)})));
    return check_of({// There is no document at first. Then one token holds the lock.
        batched_release_exclusive(another), batched_first_exclusive(true, token, request_fence),
        batched_release_exclusive(another), batched_first_exclusive(true, another, request_fence),
        batched_release_exclusive(token),
        // The lock is free, but is not granted with a fence that was used before. Further below, it is not granted
        // while there are readers, nor to a refused token.
        batched_first_exclusive(true, another, request_fence),
        // There is room for one of two claims in a statement. It becomes a holder, and the other does not.
        both_share, both_share, batched_release_several(R"({"$literal":["?t","?u"]})", "2"),
        batched_release_several(R"({"$literal":["?u"]})", "1"), batched_release_several(R"({"$literal":["?t"]})", "1"),
        with_fields(R"({"hx":"?l"})"), with_later_fence,
        with_fields(R"({"hx":0,"d":[{"t":"?t","x":0},{"t":"?u","x":"?l"}]})"), with_later_fence,
        // The document belongs to another program.
        R"({"q":)" + by_key + R"(,"u":{"f":"?f","n":1}})", with_later_fence, statement(create_shared(false, true))});
}

commands::ttl_forms make_forms(const string& with_ttl, const string& without_ttl)
{
    return {command_template(with_ttl), command_template(without_ttl)};
}

commands::ttl_forms make_forms(string (*create)(bool queues, bool has_ttl), bool queues, string (*form)(const string&))
{
    return make_forms(form(create(queues, true)), form(create(queues, false)));
}

commands make_all()
{
    return {
        .exclusive_queues = make_forms(&create_exclusive, true, &as_command),
        .exclusive_once = make_forms(&create_exclusive, false, &as_command),
        .shared_queues = make_forms(&create_shared, true, &as_command),
        .shared_once = make_forms(&create_shared, false, &as_command),
        .first_exclusive_queues = make_forms(&create_first_exclusive, true, &as_command),
        .first_exclusive_once = make_forms(&create_first_exclusive, false, &as_command),
        .batched_first_exclusive = make_forms(
            batched_first_exclusive(true, token, request_fence), batched_first_exclusive(false, token, request_fence)),
        .batched_shared_queues = make_forms(&create_shared, true, &statement),
        .batched_shared_once = make_forms(&create_shared, false, &statement),
        .batched_several_queues = make_forms(&create_several, true, &statement),
        .batched_several_once = make_forms(&create_several, false, &statement),
        .several_holder = make_forms(several_holder(token, R"("?i")", true), several_holder(token, R"("?i")", false)),
        .batched_release_exclusive = command_template(batched_release_exclusive(token)),
        .batched_release_shared = command_template(batched_release_shared()),
        .batched_release_several = command_template(batched_release_several(tokens, R"("?q")")),
        .check_batched = command_template(check_batched()),
        .check_code = command_template(check_of({batched_release_exclusive(R"("?u")")})),
        .find_options = command_template(
            R"({"projection":)" + shown_fields + R"(,"limit":"?n","batchSize":"?n","singleBatch":true})"),
        .release_exclusive = command_template(release_exclusive()),
        .release_shared = command_template(release_shared()),
        .extend_group_exclusive = command_template(extend_group_exclusive()),
        .extend_group_shared = command_template(extend_group_shared()),
        .extend_exclusive = make_forms(extend_exclusive(true), extend_exclusive(false)),
        .extend_shared = make_forms(extend_shared(true), extend_shared(false)),
        .touch_exclusive = command_template(touch_exclusive()),
        .touch_shared = command_template(touch_shared()),
        .withdraw = command_template(withdraw(false)),
        .refuse = command_template(withdraw(true)),
        .hand_over = make_forms(hand_over(true), hand_over(false)),
        .adopt_exclusive = make_forms(adopt_exclusive(true), adopt_exclusive(false)),
        .adopt_shared = make_forms(adopt_shared(true), adopt_shared(false)),
        .remove_named = command_template(remove_named()),
        .remove_expired = command_template(remove_expired()),
        .forget =
            command_template(R"({"delete":"?c","deletes":[{"q":{"p":{"$lt":"?p"},"x":0,"hx":0,"h":[],)"
                             R"("w":{"$not":{"$gt":"?y"}},"wx":{"$not":{"$gt":"?y"}},"dx":{"$not":{"$gt":"?y"}}},)"
                             R"("limit":0},{"q":{"_id.c":"check","f":{"$lt":"?z"}},"limit":0}],)" +
                             write_concern + "}"),
        .confirm = command_template(R"({"update":"?c","updates":[{"q":{"_id":{"c":"confirm"}},"u":{"$inc":{"n":1}},)"
                                    R"("upsert":true}],)" +
                                    write_concern + "}"),
        .clock = command_template(find_and_modify(
            R"({"_id":{"c":"clock"}})", {set({{"n", now}})}, returned_document::after, true, R"({"n":1})")),
        .watch = command_template(R"({"aggregate":"?c","pipeline":[{"$changeStream":{}},{"$match":)"
                                  R"({"updateDescription.updatedFields.g":{"$exists":true}}},)"
                                  R"({"$project":{"documentKey":1}}],"cursor":{"batchSize":0}})"),
    };
}

} // namespace

} // namespace templates

const commands& commands::get()
{
    static const commands all = templates::make_all();
    return all;
}

} // namespace colock::inline v0::mongo::detail
