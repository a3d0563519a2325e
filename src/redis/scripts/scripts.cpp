// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/scripts/scripts.hpp"

#include "redis/scripts/acquire_scripts.hpp"
#include "redis/scripts/form_functions.hpp"
#include "redis/scripts/group_scripts.hpp"
#include "redis/scripts/holding_scripts.hpp"
#include "redis/scripts/listing_scripts.hpp"
#include "redis/scripts/release_scripts.hpp"
#include "redis/scripts/server_scripts.hpp"
#include "redis/scripts/transfer_scripts.hpp"

#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace colock::redis::detail {

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
    const auto of_forms = [](std::string_view text) { return script(std::string(lua::form_functions) += text); };
    const auto of_groups = [](std::string_view text) {
        return script((std::string(lua::form_functions) += lua::group_functions) += text);
    };
    static const scripts all{
        .rights = script(std::string(lua::rights)),
        .anchor = script(std::string(lua::anchor)),
        .acquire = of_groups(lua::acquire),
        .acquire_plain = script(std::string(lua::acquire_plain)),
        .acquire_shared = of_groups(lua::acquire_shared),
        .acquire_all = of_groups(lua::acquire_all),
        .adopt = of_groups(lua::adopt),
        .adopt_plain = script(std::string(lua::adopt_plain)),
        .adopt_shared = of_groups(lua::adopt_shared),
        .hand_over = script(std::string(lua::hand_over)),
        .release = of_groups(lua::release),
        .release_many = script(std::string(lua::release_many)),
        .withdraw = of_groups(lua::withdraw),
        .release_shared = of_groups(lua::release_shared),
        .extend = of_groups(lua::extend),
        .extend_shared = of_groups(lua::extend_shared),
        .valid = script(std::string(lua::valid)),
        .valid_shared = script(std::string(lua::valid_shared)),
        .inspect = of_forms(lua::inspect),
        .break_holders = of_groups(lua::break_holders),
        .sweep = of_forms(lua::sweep),
        .release_members = of_groups(lua::release_members),
        .act_on_members = of_groups(lua::act_on_members),
    };
    return all;
}

} // namespace colock::redis::detail
