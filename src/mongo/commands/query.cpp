// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/query.hpp"

#include "mongo/commands/batch_update.hpp"
#include "mongo/commands/commands.hpp"
#include "mongo/driver/command_template.hpp"

#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

using wall_clock = std::chrono::system_clock;

constexpr char text_mark = 't';
constexpr char binary_mark = 'b';

bool is_utf8(std::string_view text)
{
    return bson_utf8_validate(text.data(), text.size(), false);
}

std::int64_t milliseconds_of(wall_clock::time_point time)
{
    return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// Returns the sum, which saturates because a filter may contain any duration.
std::int64_t later(std::int64_t now, std::chrono::milliseconds span)
{
    constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
    return span.count() > latest - now ? latest : now + span.count();
}

/// Conditions that must all hold.
class conjunction
{
public:
    void add(std::string_view json, command_template::values arguments)
    {
        add(command_template(json).filled(arguments));
    }
    void add(const document& each)
    {
        const auto name = std::to_string(count_++);
        bson_append_document(all_.get(), name.data(), static_cast<int>(name.size()), each.get());
    }
    [[nodiscard]] document make_query()
    {
        document query;
        bson_append_array(query.get(), "$and", -1, all_.get());
        return query;
    }

private:
    document all_;
    int count_ = 0;
};

/// Returns a text that is greater than all texts with this prefix. Returns nothing if the last character has no simple
/// successor.
std::optional<std::string> upper_bound_of_prefix(std::string prefix)
{
    constexpr char last_of_ascii = 0x7f;
    if (prefix.empty() || prefix.back() < 0 || prefix.back() >= last_of_ascii - 1)
        return std::nullopt;
    ++prefix.back();
    return prefix;
}

/// Excludes the documents of other programs.
void exclude_foreign_documents(conjunction& all)
{
    all.add(R"({"hx":{"$gte":0}})", {});
}

void add_prefix(conjunction& all, const std::string& prefix)
{
    // A prefix that ends in the middle of a character is not UTF-8, so only the client compares it.
    if (!is_utf8(prefix))
        return;
    all.add(R"({"_id":{"$gte":"?k"}})", {{"k", std::string_view(prefix)}});
    if (const auto end = upper_bound_of_prefix(prefix))
        all.add(R"({"_id":{"$lt":"?k"}})", {{"k", std::string_view(*end)}});
}

void add_remaining(conjunction& all, const filter& filter, const server_time& now)
{
    if (filter.remaining_below)
        all.add(R"({"$or":[{"x":{"$gt":"?n","$lt":"?v"}},{"h.x":{"$lt":"?v"}}]})",
            {{"n", now.earliest}, {"v", later(now.latest, *filter.remaining_below)}});
    if (filter.remaining_at_least)
        all.add(R"({"$or":[{"x":{"$gte":"?v"}},{"h.x":{"$gte":"?v"}}]})",
            {{"v", later(now.earliest, *filter.remaining_at_least)}});
}

} // namespace

std::optional<page_start> page_start::from(std::string_view cursor)
{
    page_start start;
    if (cursor.empty())
        return start;
    start.is_text_ = cursor.front() == text_mark;
    start.last_ = cursor.substr(1);
    if (start.is_text_ ? !is_utf8(start.last_) : cursor.front() != binary_mark)
        return std::nullopt;
    return start;
}

std::string page_start::cursor() const
{
    return (is_text_ ? text_mark : binary_mark) + last_;
}

bool page_start::skip_to_binary_keys() noexcept
{
    last_.clear();
    return std::exchange(is_text_, false);
}

void page_start::append_to(bson_t& query) const
{
    bson_t inside;
    bson_append_document_begin(&query, "_id", -1, &inside);
    if (is_text_)
        bson_append_utf8(&inside, "$gt", -1, last_.data(), static_cast<int>(last_.size()));
    else
        bson_append_binary(&inside, "$gt", -1, BSON_SUBTYPE_BINARY, reinterpret_cast<const std::uint8_t*>(last_.data()),
            static_cast<std::uint32_t>(last_.size()));
    bson_append_document_end(&query, &inside);
}

document key_query(std::string_view key)
{
    return command_template(R"({"_id":"?k"})").filled({{"k", bytes{key}}});
}

document keys_query(std::span<const std::string_view> keys)
{
    if (keys.size() == 1)
        return key_query(keys.front());
    document query;
    bson_t id;
    bson_t all;
    bson_append_document_begin(query.get(), "_id", -1, &id);
    bson_append_array_begin(&id, "$in", -1, &all);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const index_name name(i);
        append_bytes(all, {name.text(), static_cast<std::size_t>(name.size())}, keys[i]);
    }
    bson_append_array_end(&id, &all);
    bson_append_document_end(query.get(), &id);
    return query;
}

document list_query(const filter& filter, const page_start& from, const server_time& now)
{
    conjunction all;
    document start;
    from.append_to(*start.get());
    all.add(start);
    const char* held = R"({"$or":[{"x":{"$gt":"?n"}},{"hx":{"$gt":"?n"}}]})";
    if (filter.mode)
        held = *filter.mode == lock_mode::exclusive ? R"({"x":{"$gt":"?n"}})" : R"({"hx":{"$gt":"?n"}})";
    all.add(held, {{"n", now.earliest}});
    exclude_foreign_documents(all);
    if (filter.key_prefix && from.is_in_text_keys())
        add_prefix(all, *filter.key_prefix);
    // No group is stored for a holder without a group.
    if (filter.group && !filter.group->empty())
        all.add(R"({"$or":[{"o.group":"?v"},{"h.o.group":"?v"}]})", {{"v", bytes{*filter.group}}});
    if (filter.owner)
        all.add(R"({"$or":[{"o.owner":"?v"},{"h.o.owner":"?v"}]})", {{"v", bytes{*filter.owner}}});
    if (filter.created_before)
        all.add(R"({"$or":[{"a":{"$lt":"?v"}},{"h.a":{"$lt":"?v"}}]})",
            {{"v", milliseconds_of(*filter.created_before) + 1}});
    if (filter.created_after)
        all.add(
            R"({"$or":[{"a":{"$gte":"?v"}},{"h.a":{"$gte":"?v"}}]})", {{"v", milliseconds_of(*filter.created_after)}});
    add_remaining(all, filter, now);
    return all.make_query();
}

document expired_query(const page_start& from, std::int64_t now)
{
    conjunction all;
    document start;
    from.append_to(*start.get());
    all.add(start);
    all.add(R"({"$or":[{"x":{"$gt":0,"$lte":"?n"}},{"h.x":{"$lte":"?n"}}]})", {{"n", now}});
    exclude_foreign_documents(all);
    return all.make_query();
}

document find_command(const settings& config, const document& query, std::int64_t max_count)
{
    return command_template(
        R"({"find":"?c","filter":"?q","sort":{"_id":1},"limit":"?n","batchSize":"?n","singleBatch":true})")
        .filled({{"c", std::string_view(config.collection)}, {"q", &query}, {"n", max_count}});
}

document confirm_command(const settings& config)
{
    return commands::get().confirm.filled(
        {{"c", std::string_view(config.collection)}, {"m", config.operation_timeout.count()}});
}

document clock_command(const settings& config)
{
    return commands::get().clock.filled(
        {{"c", std::string_view(config.collection)}, {"m", config.operation_timeout.count()}});
}

std::optional<std::int64_t> read_time(const document& reply)
{
    bson_iter_t top;
    bson_iter_t found;
    if (!bson_iter_init(&top, reply.get()) || !bson_iter_find_descendant(&top, "value.n", &found) ||
        !BSON_ITER_HOLDS_INT64(&found))
        return std::nullopt;
    return bson_iter_int64(&found);
}

bool may_be_full(const document& reply)
{
    // A smaller reply had room for any document.
    constexpr std::uint32_t full_size = 256 * 1024;
    return reply.get()->len > full_size;
}

bool may_have_more(const document& reply, std::int64_t count, std::int64_t max_count)
{
    return count == max_count || may_be_full(reply);
}

void for_each_document(const document& reply, const std::function<void(const bson_iter_t& fields)>& use)
{
    for (const char* const batch : {"cursor.firstBatch", "cursor.nextBatch"}) {
        bson_iter_t top;
        bson_iter_t found;
        bson_iter_t each;
        if (!bson_iter_init(&top, reply.get()) || !bson_iter_find_descendant(&top, batch, &found) ||
            !bson_iter_recurse(&found, &each))
            continue;
        while (bson_iter_next(&each))
            use(each);
    }
}

std::string key_of(const bson_iter_t& fields)
{
    bson_iter_t inside;
    if (!bson_iter_recurse(&fields, &inside) || !bson_iter_find(&inside, "_id"))
        return {};
    return read_bytes(inside);
}

} // namespace colock::inline v0::mongo::detail
