// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Bytes from a server, or from another program behind its address. libbson reads only messages that the validation has
// accepted.
#include "fuzz/fuzz.hpp"

#include "mongo/driver/document.hpp"
#include "mongo/driver/hello.hpp"
#include "mongo/driver/reply_validation.hpp"
#include "mongo/templates/lock_view.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

#include <bson/bson.h>

#include <sys/mman.h>

namespace {

using namespace colock::mongo::detail;
using colock::testing::require;

constexpr std::int32_t op_msg = 2013;

/// Reads a document and those in it as locks.
void read(const bson_iter_t& fields)
{
    const lock_view view(fields);
    static_cast<void>(view.find("0123456789abcdef0123456789abcdef"));
    static_cast<void>(is_foreign(fields));
    for (const auto which : {holders::live, holders::expired})
        static_cast<void>(read_known_holders(fields, which, {.earliest = 1'000, .latest = 2'000}));
    bson_iter_t each;
    if (!bson_iter_recurse(&fields, &each))
        return;
    while (bson_iter_next(&each))
        read(each);
}

/// Memory that ends where a page begins that cannot be read. AddressSanitizer does not see what libbson reads.
class guarded_memory
{
public:
    [[nodiscard]] std::span<std::byte> copy(std::span<const std::byte> bytes)
    {
        require(bytes.size() <= capacity, "the input has at most -max_len bytes");
        const auto end = begin_ + (capacity - bytes.size());
        std::ranges::copy(bytes, end);
        return {end, bytes.size()};
    }

private:
    [[nodiscard]] static std::byte* map()
    {
        void* const found =
            ::mmap(nullptr, capacity + max_page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(found != MAP_FAILED, "there is memory");
        auto* const begin = static_cast<std::byte*>(found);
        require(::mprotect(begin + capacity, max_page_size, PROT_NONE) == 0, "a page can be protected");
        return begin;
    }

    static constexpr std::size_t max_page_size = 65'536;
    static constexpr std::size_t capacity = 16 * max_page_size;
    std::byte* const begin_ = map();
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size < message_header::size)
        return 0;
    static guarded_memory memory;
    auto message = memory.copy(std::as_bytes(std::span(data, size)));
    const auto header = message_header::read(message.first<message_header::size>());
    static_cast<void>(validate_header(header, {.id = 7, .op_code = header.op_code}));
    // The stream reads as many bytes as the header states, so the length is not validated again.
    if (validate_body(message))
        return 0;
    require(message.size() <= size, "a message does not become longer");

    constexpr std::size_t flags_and_kind = 5;
    constexpr std::size_t before_document_of_op_reply = 20;
    const auto body = message.subspan(
        message_header::size + (header.op_code == op_msg ? flags_and_kind : before_document_of_op_reply));
    bson_t fields;
    require(bson_init_static(&fields, reinterpret_cast<const std::uint8_t*>(body.data()), body.size()),
        "the message contains one document");
    document copy;
    bson_copy_to(&fields, copy.overwrite());
    static_cast<void>(lock_view::of_answer(copy));
    server_clock clock;
    clock.update(hello(copy).local_time, {}, {});
    static_cast<void>(clock.latest(colock::lease_clock::time_point(std::chrono::hours(24))));
    // Reads all values.
    bson_free(bson_as_canonical_extended_json(&fields, nullptr));
    bson_iter_t each;
    require(bson_iter_init(&each, &fields), "libbson accepts a document that was validated");
    while (bson_iter_next(&each))
        read(each);
    return 0;
}
