// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/command.hpp"

#include "mongo/driver/hello.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

/// Returns whether the driver has completed the handshake with its only server.
bool is_connected(mongoc_client_t& driver) noexcept
{
    constexpr std::uint32_t first_server = 1;
    const std::unique_ptr<mongoc_server_description_t, decltype(&mongoc_server_description_destroy)> server(
        mongoc_client_get_server_description(&driver, first_server), &mongoc_server_description_destroy);
    return server && std::string_view(mongoc_server_description_type(server.get())) != "Unknown";
}

} // namespace

command::command(std::string database, document request) : database_(std::move(database)), request_(std::move(request))
{
}

command::command(dated_hello) : database_("admin"), request_(hello::make_command()), is_dated_(true) {}

void command::perform(mongoc_client_t& driver) noexcept
{
    const bool connects = is_dated_ && !is_connected(driver);
    ask_once(driver);
    if (connects && result_.outcome == answer::kind::done)
        ask_once(driver);
}

void command::ask_once(mongoc_client_t& driver) noexcept
{
    const auto now = lease_clock::now();
    result_ = ask(driver, database_, request_);
    result_.sent_at = now;
}

} // namespace colock::inline v0::mongo::detail
