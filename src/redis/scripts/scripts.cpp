// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/scripts/scripts.hpp"

#include "redis/scripts/acquire_scripts.hpp"
#include "redis/scripts/anchor_scripts.hpp"
#include "redis/scripts/extend_scripts.hpp"
#include "redis/scripts/form_functions.hpp"
#include "redis/scripts/group_functions.hpp"
#include "redis/scripts/group_scripts.hpp"
#include "redis/scripts/listing_scripts.hpp"
#include "redis/scripts/release_scripts.hpp"
#include "redis/scripts/rights_scripts.hpp"
#include "redis/scripts/transfer_scripts.hpp"
#include "redis/scripts/valid_scripts.hpp"

#include <boost/algorithm/string/replace.hpp>

#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

std::string sha1_hex(std::string_view text)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
        throw std::bad_alloc();
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) {
        hex += "0123456789abcdef"[digest[i] >> 4];
        hex += "0123456789abcdef"[digest[i] & 15];
    }
    return hex;
}

scripts make_scripts(bool sharded)
{
    const auto join = [sharded](const auto&... texts) {
        std::string whole;
        (whole += ... += texts);
        constexpr std::string_view publishes = "redis.pcall('PUBLISH', ";
        if (sharded && whole.find(publishes) != whole.npos)
            whole = std::string(lua::publish_to_shard) + boost::replace_all_copy(whole, publishes, "publish(");
        return script(std::move(whole));
    };
    const auto form_functions = std::string(lua::refusal_function) += lua::form_functions;
    const auto group_functions = form_functions + std::string(lua::group_functions);
    return {
        .rights = join(lua::rights),
        .anchor = join(lua::anchor),
        .acquire = join(group_functions, lua::examine_function, lua::acquire),
        .acquire_plain = join(lua::acquire_plain),
        .acquire_shared = join(lua::acquire_first_reader, group_functions, lua::acquire_shared),
        .acquire_all = join(group_functions, lua::examine_function, lua::acquire_all),
        .adopt = join(group_functions, lua::adopt),
        .adopt_shared = join(group_functions, lua::adopt_shared),
        .hand_over = join(lua::refusal_function, lua::hand_over),
        .release = join(group_functions, lua::release),
        .release_many = join(lua::refusal_function, lua::release_many),
        .withdraw = join(group_functions, lua::withdraw),
        .release_shared = join(lua::release_last_reader, group_functions, lua::release_shared),
        .extend = join(group_functions, lua::extend),
        .extend_shared = join(group_functions, lua::extend_shared),
        .valid = join(lua::refusal_function, lua::valid),
        .valid_shared = join(lua::refusal_function, lua::valid_shared),
        .inspect = join(form_functions, lua::inspect),
        .break_holders = join(group_functions, lua::break_holders),
        .purge = join(form_functions, lua::purge),
        .release_members = join(group_functions, lua::release_many),
        .extend_or_release_members = join(group_functions, lua::extend_or_release_members),
        .enter_group = join(form_functions, lua::enter_group),
        .leave_group = join(group_functions, lua::leave_group),
    };
}

} // namespace

script::script(std::string text) : text_(std::move(text)), digest_(sha1_hex(text_)) {}

const scripts& scripts::get(bool sharded)
{
    static const scripts ordinary_channels = make_scripts(false), sharded_channels = make_scripts(true);
    return sharded ? sharded_channels : ordinary_channels;
}

} // namespace colock::inline v0::redis::detail
