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

} // namespace

script::script(std::string text) : text_(std::move(text)), digest_(sha1_hex(text_)) {}

const scripts& scripts::get()
{
    const auto join = [](auto... texts) {
        std::string whole;
        (whole += ... += texts);
        return script(std::move(whole));
    };
    const auto with_refusal_function = [&](auto... texts) { return join(lua::refusal_function, texts...); };
    const auto with_form_functions = [&](auto... texts) {
        return with_refusal_function(lua::form_functions, texts...);
    };
    const auto with_group_functions = [&](auto... texts) {
        return with_form_functions(lua::group_functions, texts...);
    };
    static const scripts all{
        .rights = script(std::string(lua::rights)),
        .anchor = script(std::string(lua::anchor)),
        .acquire = with_group_functions(lua::examine_function, lua::acquire),
        .acquire_plain = script(std::string(lua::acquire_plain)),
        .acquire_shared = with_group_functions(lua::acquire_shared),
        .acquire_all = with_group_functions(lua::examine_function, lua::acquire_all),
        .adopt = with_group_functions(lua::adopt),
        .adopt_shared = with_group_functions(lua::adopt_shared),
        .hand_over = with_refusal_function(lua::hand_over),
        .release = with_group_functions(lua::release),
        .release_many = with_refusal_function(lua::release_many),
        .withdraw = with_group_functions(lua::withdraw),
        .release_shared = with_group_functions(lua::release_shared),
        .extend = with_group_functions(lua::extend),
        .extend_shared = with_group_functions(lua::extend_shared),
        .valid = with_refusal_function(lua::valid),
        .valid_shared = with_refusal_function(lua::valid_shared),
        .inspect = with_form_functions(lua::inspect),
        .break_holders = with_group_functions(lua::break_holders),
        .purge = with_form_functions(lua::purge),
        .release_members = with_group_functions(lua::release_many),
        .extend_or_release_members = with_group_functions(lua::extend_or_release_members),
    };
    return all;
}

} // namespace colock::inline v0::redis::detail
