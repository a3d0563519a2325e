// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/scram.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

namespace colock::mongo::detail {

namespace {

/// What is spoken without channel binding: "n,,", in base64 below.
constexpr const char* no_binding = "n,,";
constexpr const char* no_binding_base64 = "biws";

using bytes = std::array<unsigned char, EVP_MAX_MD_SIZE>;

const char* name_of(scram_hash by)
{
    return by == scram_hash::sha1 ? "SHA1" : "SHA256";
}

const unsigned char* raw(std::string_view text)
{
    return reinterpret_cast<const unsigned char*>(text.data());
}

std::string text_of(const bytes& from, std::size_t size)
{
    return {reinterpret_cast<const char*>(from.data()), size};
}

/// Without memory, or without the algorithm: OpenSSL may be set up to have no MD5, or no SHA-1.
void check(bool done, const char* what)
{
    if (!done)
        throw std::runtime_error(std::string("OpenSSL cannot do ") + what);
}

::evp_mac_ctx_st* mac_with(scram_hash by, std::string_view key)
{
    const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> algorithm(
        EVP_MAC_fetch(nullptr, "HMAC", nullptr), &EVP_MAC_free);
    check(algorithm != nullptr, "HMAC");
    auto* const made = EVP_MAC_CTX_new(algorithm.get());
    check(made != nullptr, "HMAC");
    const std::array<OSSL_PARAM, 2> with{
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(name_of(by)), 0),
        OSSL_PARAM_construct_end()};
    // A key of no length would mean that of before: there is none.
    if (EVP_MAC_init(made, raw(key.empty() ? std::string_view("", 1) : key), std::max<std::size_t>(key.size(), 1),
            with.data()) != 1)
    {
        EVP_MAC_CTX_free(made);
        check(false, name_of(by));
    }
    return made;
}

std::string finish(::evp_mac_ctx_st* mac, std::string_view text)
{
    bytes out;
    std::size_t size = 0;
    check(
        EVP_MAC_update(mac, raw(text), text.size()) == 1 && EVP_MAC_final(mac, out.data(), &size, out.size()), "HMAC");
    return text_of(out, size);
}

std::string hmac(scram_hash by, std::string_view key, std::string_view text)
{
    const std::unique_ptr<::evp_mac_ctx_st, decltype(&EVP_MAC_CTX_free)> mac(mac_with(by, key), &EVP_MAC_CTX_free);
    return finish(mac.get(), text);
}

std::string digest(const char* by, std::string_view text)
{
    bytes out;
    std::size_t size = 0;
    check(EVP_Q_digest(nullptr, by, nullptr, text.data(), text.size(), out.data(), &size) == 1, by);
    return text_of(out, size);
}

std::string exclusive_or(std::string left, std::string_view right)
{
    std::ranges::transform(left, right, left.begin(), [](char a, char b) { return static_cast<char>(a ^ b); });
    return left;
}

std::string to_base64(std::string_view text)
{
    std::string made((text.size() + 2) / 3 * 4 + 1, '\0');
    const auto size =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(made.data()), raw(text), static_cast<int>(text.size()));
    made.resize(static_cast<std::size_t>(size));
    return made;
}

std::optional<std::string> from_base64(std::string_view text)
{
    const auto padding = text.size() - (text.find_last_not_of('=') + 1);
    if (text.empty() || text.size() % 4 != 0 || padding > 2)
        return std::nullopt;
    std::string made(text.size() / 4 * 3, '\0');
    if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(made.data()), raw(text), static_cast<int>(text.size())) < 0)
        return std::nullopt;
    // It counts what is filled up as zeros.
    made.resize(made.size() - padding);
    return made;
}

/// As RFC 5802 has it: the two characters that mean something.
std::string escaped(std::string_view user)
{
    std::string made;
    for (const char each : user) {
        if (each == '=')
            made += "=3D";
        else if (each == ',')
            made += "=2C";
        else
            made += each;
    }
    return made;
}

/// The next attribute of a message, which must be of that name; empty: it is not.
std::string_view take_attribute(std::string_view& from, char name)
{
    if (from.size() < 2 || from[0] != name || from[1] != '=')
        return {};
    const auto end = std::min(from.find(','), from.size());
    const auto value = from.substr(2, end - 2);
    from.remove_prefix(std::min(end + 1, from.size()));
    return value;
}

std::optional<int> number_of(std::string_view text)
{
    int number = 0;
    const auto* const end = text.data() + text.size();
    const auto [stopped, failed] = std::from_chars(text.data(), end, number);
    return failed == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

} // namespace

salted_password::salted_password(const salting& how, std::string_view password)
    : mac_(mac_with(how.by, password)), left_(how.rounds - 1),
      last_(finish(mac_, how.salt + std::string("\0\0\0\1", 4))), key_(last_)
{
}

salted_password::~salted_password()
{
    EVP_MAC_CTX_free(mac_);
}

std::string salted_password::hashed(std::string_view text)
{
    check(EVP_MAC_init(mac_, nullptr, 0, nullptr) == 1, "HMAC");
    return finish(mac_, text);
}

bool salted_password::advance(int rounds)
{
    for (; rounds > 0 && left_ > 0; --rounds, --left_) {
        last_ = hashed(last_);
        key_ = exclusive_or(std::move(key_), last_);
    }
    return finished();
}

scram::scram(scram_hash by, std::string_view user, std::string nonce)
    : user_(escaped(user)), nonce_(std::move(nonce)), asked_{.by = by}
{
}

std::string scram::first() const
{
    return no_binding + ("n=" + user_) + ",r=" + nonce_;
}

bool scram::refuse(const char* why)
{
    why_ = why;
    return false;
}

bool scram::take_first(std::string_view said)
{
    server_first_ = said;
    const auto nonce = take_attribute(said, 'r');
    const auto salt = from_base64(take_attribute(said, 's'));
    const auto rounds = number_of(take_attribute(said, 'i'));
    if (nonce.empty() || !salt || !rounds)
        return refuse("the server's challenge cannot be read");
    if (!nonce.starts_with(nonce_) || nonce.size() == nonce_.size())
        return refuse("the server's challenge is no answer to ours");
    if (*rounds < fewest_rounds)
        return refuse("the server asks for so few rounds of hashing that the password could be guessed");
    if (*rounds > most_rounds)
        return refuse("the server asks for more than a million rounds of hashing");
    server_nonce_ = nonce;
    asked_.salt = *salt;
    asked_.rounds = *rounds;
    return true;
}

std::string scram::last(std::string_view key)
{
    const auto by = asked_.by;
    const auto said = std::string("c=") + no_binding_base64 + ",r=" + server_nonce_;
    const auto all = "n=" + user_ + ",r=" + nonce_ + ',' + server_first_ + ',' + said;
    const auto client_key = hmac(by, key, "Client Key");
    const auto signature = hmac(by, digest(name_of(by), client_key), all);
    server_signature_ = hmac(by, hmac(by, key, "Server Key"), all);
    return said + ",p=" + to_base64(exclusive_or(client_key, signature));
}

bool scram::take_last(std::string_view said)
{
    const auto signature = from_base64(take_attribute(said, 'v'));
    if (!signature || server_signature_.empty() || signature->size() != server_signature_.size() ||
        CRYPTO_memcmp(signature->data(), server_signature_.data(), server_signature_.size()) != 0)
        return refuse("the server does not prove that it knows the password");
    return true;
}

std::string digested_password(std::string_view user, std::string_view password)
{
    constexpr const char* digits = "0123456789abcdef";
    std::string made;
    for (const char each : digest("MD5", std::string(user) + ":mongo:" + std::string(password))) {
        const auto byte = static_cast<unsigned char>(each);
        made += {digits[byte / 16], digits[byte % 16]};
    }
    return made;
}

} // namespace colock::mongo::detail
