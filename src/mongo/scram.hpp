// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_mac_ctx_st;

namespace colock::mongo::detail {

/// The hash function that a conversation is about.
enum class scram_hash : unsigned char
{
    sha1,
    sha256,
};

/// What a server asks of a password before it is used.
struct salting
{
    scram_hash by = scram_hash::sha256;
    std::string salt{};
    int rounds = 0;
    friend bool operator==(const salting&, const salting&) = default;
};

/// Derives a key from a password (PBKDF2, as RFC 5802 calls Hi), which is meant to take long, a few rounds at a time.
class salted_password
{
public:
    salted_password(const salting& how, std::string_view password);
    ~salted_password();
    salted_password(const salted_password&) = delete;
    salted_password& operator=(const salted_password&) = delete;

    /// True: it is finished.
    bool advance(int rounds);
    [[nodiscard]] bool finished() const noexcept { return left_ == 0; }
    /// When it is finished.
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

private:
    [[nodiscard]] std::string hashed(std::string_view text);

    ::evp_mac_ctx_st* const mac_;
    int left_;
    std::string last_;
    std::string key_;
};

/// One conversation of SCRAM (RFC 5802, RFC 7677), without channel binding: what the client says, and whether it
/// accepts what the server has said.
///
/// Thread safety: none. OpenSSL needs a deep stack: not to be used on a fiber.
class scram
{
public:
    /// Less would be a server, or somebody in its place, that wants to have the password guessed.
    static constexpr int fewest_rounds = 4096;
    /// MongoDB does 10,000 or 15,000 of itself. More would keep this side at work for nothing.
    static constexpr int most_rounds = 1'000'000;

    /// \param nonce printable, and never used before
    scram(scram_hash by, std::string_view user, std::string nonce);

    /// What the client begins with.
    [[nodiscard]] std::string first() const;
    /// What the server says to that. False: the client does not go on, for the reason of `why`.
    [[nodiscard]] bool take_first(std::string_view said);
    /// When it was taken.
    [[nodiscard]] const salting& asked() const noexcept { return asked_; }
    /// What the client says then: that it knows the password.
    /// \param key of the password as it was asked for
    [[nodiscard]] std::string last(std::string_view key);
    /// What the server says to that: that it knows the password, too.
    [[nodiscard]] bool take_last(std::string_view said);

    [[nodiscard]] const std::string& why() const noexcept { return why_; }

private:
    bool refuse(const char* why);

    const std::string user_;
    const std::string nonce_;
    salting asked_;
    std::string server_first_;
    std::string server_nonce_;
    std::string server_signature_;
    std::string why_;
};

/// What MongoDB takes for the password where the hash is SHA-1: 32 hexadecimal digits.
[[nodiscard]] std::string digested_password(std::string_view user, std::string_view password);

} // namespace colock::mongo::detail
