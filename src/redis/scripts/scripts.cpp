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
        script(std::string(lua::rights)),
        script(std::string(lua::anchor)),
        of_groups(lua::acquire),
        script(std::string(lua::acquire_plain)),
        of_groups(lua::acquire_shared),
        of_groups(lua::acquire_all),
        of_groups(lua::adopt),
        script(std::string(lua::adopt_plain)),
        of_groups(lua::adopt_shared),
        script(std::string(lua::hand_over)),
        of_groups(lua::release),
        script(std::string(lua::release_many)),
        of_groups(lua::withdraw),
        of_groups(lua::release_shared),
        of_groups(lua::extend),
        of_groups(lua::extend_shared),
        script(std::string(lua::valid)),
        script(std::string(lua::valid_shared)),
        of_forms(lua::inspect),
        of_groups(lua::break_holders),
        of_forms(lua::sweep),
        of_groups(lua::release_members),
        of_groups(lua::act_on_members),
    };
    return all;
}

} // namespace colock::redis::detail
