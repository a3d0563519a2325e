// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/hello.hpp"

#include "mongo/driver/server_clock.hpp"

#include <colock/error.hpp>

#include <array>
#include <iterator>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

bool is_true(bson_iter_t& at)
{
    return BSON_ITER_HOLDS_BOOL(&at) && bson_iter_bool(&at);
}

std::string text_of(bson_iter_t& at)
{
    return BSON_ITER_HOLDS_UTF8(&at) ? bson_iter_utf8(&at, nullptr) : std::string();
}

/// Returns whether a server's clock may show this time. Sums with other times could overflow.
bool is_time(std::int64_t milliseconds)
{
    return milliseconds >= 0 && milliseconds <= max_time;
}

/// Returns the id of the process in the field `topologyVersion`.
std::string process_in(const bson_iter_t& topology_version)
{
    bson_iter_t inside;
    if (!BSON_ITER_HOLDS_DOCUMENT(&topology_version) || !bson_iter_recurse(&topology_version, &inside) ||
        !bson_iter_find(&inside, "processId") || !BSON_ITER_HOLDS_OID(&inside))
        return {};
    std::array<char, 25> text{};
    bson_oid_to_string(bson_iter_oid(&inside), text.data());
    return text.data();
}

void add(std::vector<remote::endpoint>& to, const std::string& name)
{
    try {
        const auto text = "mongodb://" + name;
        auto found = remote::url(text, "mongodb", "").hosts("27017");
        to.insert(to.end(), std::move_iterator(found.begin()), std::move_iterator(found.end()));
    } catch (const validation_error&) {
        // The text is not the name of a server, so it is left out.
    }
}

} // namespace

document hello::make_command()
{
    return document::from_json(R"({"hello": 1})");
}

hello::hello(const document& reply)
{
    std::string primary;
    std::vector<remote::endpoint> others;
    bson_iter_t at;
    bson_iter_init(&at, reply.get());
    while (bson_iter_next(&at)) {
        const std::string_view key = bson_iter_key(&at);
        bson_iter_t each;
        if (key == "isWritablePrimary")
            writable = is_true(at);
        else if (key == "secondary" && is_true(at))
            state = "a secondary";
        else if (key == "arbiterOnly" && is_true(at))
            state = "an arbiter";
        else if (key == "msg")
            is_router = text_of(at) == "isdbgrid";
        else if (key == "setName")
            identity.set = text_of(at);
        else if (key == "me")
            identity.name = text_of(at);
        else if (key == "primary")
            primary = text_of(at);
        else if (key == "hosts" && BSON_ITER_HOLDS_ARRAY(&at) && bson_iter_recurse(&at, &each))
            while (bson_iter_next(&each))
                add(others, text_of(each));
        else if (key == "localTime" && BSON_ITER_HOLDS_DATE_TIME(&at) && is_time(bson_iter_date_time(&at)))
            local_time = bson_iter_date_time(&at);
        else if (key == "maxWireVersion" && BSON_ITER_HOLDS_INT32(&at))
            identity.max_wire_version = bson_iter_int32(&at);
        else if (key == "topologyVersion")
            identity.process = process_in(at);
    }
    if (!primary.empty())
        add(members, primary);
    members.insert(members.end(), std::move_iterator(others.begin()), std::move_iterator(others.end()));
}

} // namespace colock::inline v0::mongo::detail
