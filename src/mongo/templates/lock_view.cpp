// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/lock_view.hpp"

#include "mongo/driver/command_template.hpp"
#include "remote/adapter/stored_time.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

template <class Use>
void for_each(const bson_iter_t& in, Use use)
{
    bson_iter_t each;
    if (!bson_iter_recurse(&in, &each))
        return;
    while (bson_iter_next(&each))
        use(each);
}

std::string_view text_of(const bson_iter_t& field)
{
    std::uint32_t size = 0;
    const char* const text = BSON_ITER_HOLDS_UTF8(&field) ? bson_iter_utf8(&field, &size) : "";
    return {text, size};
}

bool is_number(const bson_iter_t& field)
{
    return BSON_ITER_HOLDS_INT64(&field) || BSON_ITER_HOLDS_INT32(&field) || BSON_ITER_HOLDS_DOUBLE(&field);
}

/// Returns the value of a number. A floating-point number beyond the range of an integer becomes the limit of the
/// range.
std::int64_t number_of(const bson_iter_t& field)
{
    if (!BSON_ITER_HOLDS_DOUBLE(&field))
        return bson_iter_as_int64(&field);
    constexpr double limit = 9.2e18;
    const double value = bson_iter_double(&field);
    if (value >= limit)
        return never;
    return value > -limit ? static_cast<std::int64_t>(value) : -never;
}

bool read_field(const bson_iter_t& field, holder_view& into)
{
    const std::string_view name = bson_iter_key(&field);
    if (name == "t")
        into.token = text_of(field);
    else if (name == "x")
        into.expires = number_of(field);
    else if (name == "f")
        into.fence = number_of(field);
    else if (name == "e")
        into.request = number_of(field);
    else
        return false;
    return true;
}

/// Returns whether the field is a time that every document of a lock has.
bool is_time_of_lock(const bson_iter_t& field, std::string_view name)
{
    return bson_iter_key(&field) == name && is_number(field) && number_of(field) >= 0;
}

/// \param field a field that `shown_fields` names
bool has_foreign_type(const bson_iter_t& field)
{
    const std::string_view name = bson_iter_key(&field);
    if (BSON_ITER_HOLDS_NULL(&field))
        return false;
    if (name == "t" || name == "wt" || name == "wb")
        return !BSON_ITER_HOLDS_UTF8(&field);
    if (name == "h")
        return !BSON_ITER_HOLDS_ARRAY(&field);
    if (name == "x" || name == "f" || name == "e" || name == "wx" || name == "w")
        return !is_number(field);
    return false;
}

std::optional<std::chrono::system_clock::time_point> time_of(std::int64_t milliseconds)
{
    if (milliseconds == 0)
        return std::nullopt;
    return remote::stored_time(milliseconds);
}

void read_owner(const bson_iter_t& from, lock_status& into)
{
    for_each(from, [&](const bson_iter_t& field) {
        const std::string_view name = bson_iter_key(&field);
        if (name == "host")
            into.host = read_bytes(field);
        else if (name == "owner")
            into.owner = read_bytes(field);
        else if (name == "comment")
            into.comment = read_bytes(field);
        else if (name == "group")
            into.group = read_bytes(field);
    });
}

/// One holder with its stored owner and times. `read` ignores fields that do not belong to a holder.
struct whole_holder
{
    holder_view view{};
    lock_status status{};

    void read(const bson_iter_t& field)
    {
        const std::string_view name = bson_iter_key(&field);
        if (name == "o")
            read_owner(field, status);
        else if (name == "a")
            status.created = time_of(bson_iter_as_int64(&field));
        else if (name == "r")
            status.renewed = time_of(bson_iter_as_int64(&field));
        else
            read_field(field, view);
    }
};

} // namespace

lock_view lock_view::of_answer(const document& reply)
{
    lock_view view;
    bson_iter_t value;
    if (bson_iter_init_find(&value, reply.get(), "value") && BSON_ITER_HOLDS_DOCUMENT(&value))
        view.read(value);
    return view;
}

lock_view::lock_view(const bson_iter_t& fields)
{
    read(fields);
}

void lock_view::read(const bson_iter_t& fields)
{
    exists_ = true;
    bool has_x = false;
    bool has_hx = false;
    for_each(fields, [&](const bson_iter_t& field) {
        is_foreign_ = is_foreign_ || has_foreign_type(field);
        has_x = has_x || is_time_of_lock(field, "x");
        has_hx = has_hx || is_time_of_lock(field, "hx");
        if (read_field(field, exclusive_))
            return;
        const std::string_view name = bson_iter_key(&field);
        if (name == "wt")
            writer_ = text_of(field);
        else if (name == "wx")
            writer_until_ = number_of(field);
        else if (name == "w")
            wait_mark_until_ = number_of(field);
        else if (name == "wb")
            waiter_ = text_of(field);
        else if (name == "o")
            for_each(field, [this](const bson_iter_t& inner) {
                const std::string_view inner_name = bson_iter_key(&inner);
                if (inner_name == "owner")
                    owner_ = text_of(inner);
                else if (inner_name == "host")
                    host_ = text_of(inner);
            });
        else if (name == "h")
            for_each(field, [this](const bson_iter_t& member) {
                auto& added = shared_.emplace_back();
                for_each(member, [&](const bson_iter_t& inner) {
                    // A server treats values of other types as greater than any time, so such a holder would never
                    // expire.
                    is_foreign_ = is_foreign_ || has_foreign_type(inner);
                    read_field(inner, added);
                });
            });
    });
    is_foreign_ = is_foreign_ || !has_x || !has_hx;
}

const holder_view* lock_view::find(std::string_view token) const noexcept
{
    if (exclusive_.token == token)
        return &exclusive_;
    const auto found = std::ranges::find(shared_, token, &holder_view::token);
    return found == shared_.end() ? nullptr : &*found;
}

std::int64_t lock_view::free_at(const claim& claim, std::int64_t now) const noexcept
{
    auto until = exclusive_.expires;
    if (claim.mode() == lock_mode::shared) {
        if (until > now)
            return until;
        if (writer_until_ > now)
            return writer_until_;
        std::int64_t first = 0;
        for (const auto& each : shared_) {
            if (each.expires > now && (first == 0 || each.expires < first))
                first = each.expires;
        }
        return first;
    }
    for (const auto& each : shared_)
        until = std::max(until, each.expires);
    return until > now ? until : 0;
}

bool is_foreign(const bson_iter_t& fields)
{
    bool has_x = false;
    bool has_hx = false;
    bool has_others = false;
    for_each(fields, [&](const bson_iter_t& field) {
        const std::string_view name = bson_iter_key(&field);
        has_x = has_x || (name == "x" && is_number(field));
        has_hx = has_hx || (name == "hx" && is_number(field));
        has_others = has_others || name != "_id";
    });
    return has_others && !(has_x && has_hx);
}

std::vector<known_holder> read_known_holders(const bson_iter_t& fields, holders selection, const server_time& now)
{
    std::vector<known_holder> found;
    if (is_foreign(fields))
        return found;
    std::string key;
    const auto add = [&](whole_holder each, lock_mode mode) {
        if (each.view.token.empty() || (each.view.expires > now.earliest) != (selection == holders::live))
            return;
        each.status.mode = mode;
        if (!each.status.renewed)
            each.status.renewed = each.status.created;
        each.status.fence = static_cast<std::uint64_t>(each.view.fence);
        if (each.view.expires != never)
            each.status.remaining = std::chrono::milliseconds(std::max(each.view.expires, now.latest) - now.latest);
        found.push_back({std::string(each.view.token), std::move(each.status)});
    };
    whole_holder exclusive;
    for_each(fields, [&](const bson_iter_t& field) {
        const std::string_view name = bson_iter_key(&field);
        if (name == "_id")
            key = read_bytes(field);
        else if (name == "h")
            for_each(field, [&](const bson_iter_t& member) {
                whole_holder one;
                for_each(member, [&](const bson_iter_t& inner) { one.read(inner); });
                add(std::move(one), lock_mode::shared);
            });
        else
            exclusive.read(field);
    });
    add(std::move(exclusive), lock_mode::exclusive);
    for (auto& each : found)
        each.status.key = key;
    return found;
}

std::vector<lock_status> read_holders(const bson_iter_t& fields, holders selection, const server_time& now)
{
    std::vector<lock_status> found;
    for (auto& each : read_known_holders(fields, selection, now))
        found.push_back(std::move(each.status));
    return found;
}

document to_document(const owner_data& owner)
{
    document result;
    append_bytes(*result.get(), "host", owner.host);
    append_bytes(*result.get(), "owner", owner.owner);
    append_bytes(*result.get(), "comment", owner.comment);
    // An empty group is not stored, so that the sparse index of groups has no entry for it.
    if (!owner.group.empty())
        append_bytes(*result.get(), "group", owner.group);
    return result;
}

} // namespace colock::inline v0::mongo::detail
