// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/driver.hpp"

#include <array>
#include <mutex>

#include <mongoc/mongoc.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace colock::inline v0::mongo::detail {

void start_driver()
{
    static std::once_flag once;
    std::call_once(once, [] {
        // Set the handler first: the initialization also logs, unless the driver was built to initialize itself when it
        // is loaded.
        mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
        mongoc_init();
    });
}

void prepare_cryptography()
{
    start_driver();
    static std::once_flag once;
    std::call_once(once, [] {
        std::array<unsigned char, EVP_MAX_MD_SIZE> result{};
        RAND_bytes(result.data(), static_cast<int>(result.size()));
        for (const auto* const hash : {EVP_sha1(), EVP_sha256()}) {
            unsigned size = 0;
            EVP_Digest("", 0, result.data(), &size, hash, nullptr);
            HMAC(hash, "", 0, result.data(), 1, result.data(), &size);
            PKCS5_PBKDF2_HMAC("", 0, result.data(), 1, 1, hash, EVP_MD_get_size(hash), result.data());
        }
    });
}

} // namespace colock::inline v0::mongo::detail
