// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/authentication.hpp"

#include <exception>
#include <memory>
#include <string_view>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

bool connect(mongoc_client_t& driver, bson_error_t& error) noexcept
{
    constexpr bool for_writes = false;
    const std::unique_ptr<mongoc_server_description_t, decltype(&mongoc_server_description_destroy)> server(
        mongoc_client_select_server(&driver, for_writes, nullptr, &error), &mongoc_server_description_destroy);
    // The driver selects its only server even if that server refused the handshake.
    return server && std::string_view(mongoc_server_description_type(server.get())) != "Unknown";
}

bool ping(mongoc_client_t& driver, bson_error_t& error) noexcept
{
    document request;
    BSON_APPEND_INT32(request.get(), "ping", 1);
    return mongoc_client_command_simple(&driver, "admin", request.get(), nullptr, nullptr, &error);
}

bool is_denial(const bson_error_t& error) noexcept
{
    return error.domain == MONGOC_ERROR_SCRAM ||
           (error.domain == MONGOC_ERROR_CLIENT && error.code == MONGOC_ERROR_CLIENT_AUTHENTICATE);
}

} // namespace

void authentication::perform(mongoc_client_t& driver) noexcept
{
    result_.ends_connection = true;
    bson_error_t error{};
    // Connect without a command first. The driver reports a server that refuses the handshake, because it is shutting
    // down, as a failed authentication.
    const bool is_connected = connect(driver, error);
    if (is_connected && ping(driver, error)) {
        result_.outcome = answer::kind::done;
        result_.ends_connection = false;
        return;
    }
    if (is_connected && is_denial(error)) {
        result_.outcome = answer::kind::refused;
        result_.code = authentication_failed;
    }
    try {
        result_.text = error.message;
    } catch (const std::exception&) {
        // Out of memory: the message stays empty.
    }
}

void authentication::set_cause(const error_code& cause, bool)
{
    // The driver also reports a lost connection as a failed authentication.
    if (cause)
        result_.code = 0;
    if (result_.code == 0)
        result_.outcome = answer::kind::unsent;
    result_.set_cause(cause, false);
}

} // namespace colock::inline v0::mongo::detail
