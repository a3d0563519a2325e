// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Data that other programs may have stored in a backend.
#include "fuzz/fuzz.hpp"

#include "remote/adapter/stored_owner.hpp"
#include "zookeeper/layout/key_encoding.hpp"
#include "zookeeper/layout/node_names.hpp"
#include "zookeeper/operations/node_data.hpp"

#include <string>
#include <string_view>

namespace {

using colock::testing::require;

void check_owner(std::string_view text)
{
    const auto stored = colock::remote::parse_stored_owner(text);
    if (!stored)
        return;
    std::string again;
    colock::remote::append_stored_owner(again, stored->owner, stored->created);
    const auto parsed = colock::remote::parse_stored_owner(again);
    require(parsed.has_value(), "written owner data can be read");
    require(parsed->created == stored->created, "the time of an owner is read as it was written");
    require(parsed->owner == stored->owner, "owner data are read as they were written");
}

void check_zookeeper(std::string_view text)
{
    using namespace colock::zookeeper::detail;
    static_cast<void>(parse_node_data(text));
    for (const auto each : {layout::standard, layout::curator_mutex, layout::curator_read_write})
        static_cast<void>(parse_node(each, text));
    if (const auto key = decode_key(text))
        require(encode_key(*key) == text, "only the encoding of a key is decoded");
    if (!text.empty())
        require(decode_key(encode_key(text)) == text, "an encoded key is decoded");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto text = colock::testing::text_of(data, size);
    check_owner(text);
    check_zookeeper(text);
    return 0;
}
