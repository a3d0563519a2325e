// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Bytes from a server, or from another program behind its address. The driver parses only bytes that `framing` has
// accepted, and must not end the process then.
#include "fuzz/fuzz.hpp"

#include "redis/connection/framing.hpp"
#include "redis/operations/lock_rows.hpp"
#include "redis/reply.hpp"
#include "redis/settings.hpp"

#include <boost/redis/resp3/parser.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace {

using namespace colock::redis::detail;
using colock::testing::require;

[[nodiscard]] bool is_accepted(std::string_view bytes, std::size_t piece)
{
    framing frames;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
        if (!frames.accept(bytes.substr(0, piece)))
            return false;
    }
    return true;
}

/// Reads each reply as the holders of a key.
struct reader
{
    void on_init() { read.clear(); }
    void on_node(const boost::redis::resp3::node_view& node, colock::error_code&) { read.add(node); }
    void on_done()
    {
        static const settings config{colock::redis::options{}};
        std::vector<colock::lock_status> holders;
        static_cast<void>(add_rows(config, read, holders));
    }

    reply read;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    auto bytes = colock::testing::text_of(data, size);
    const bool accepted = is_accepted(bytes, bytes.size());
    require(accepted == is_accepted(bytes, 1 + size % 7), "the pieces in which bytes arrive do not matter");
    if (!accepted)
        return 0;
    boost::redis::resp3::parser parser;
    reader into;
    colock::error_code code;
    while (!bytes.empty() && boost::redis::resp3::parse(parser, bytes, into, code) && !code) {
        bytes.remove_prefix(parser.get_consumed());
        parser.reset();
    }
    return 0;
}
