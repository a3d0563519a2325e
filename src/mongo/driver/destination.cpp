// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/destination.hpp"

#include "net/url.hpp"

#include <boost/assert.hpp>

#include <cstdint>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

namespace {

/// colock checks idle connections itself, so the driver's own check is set to 33 minutes. A longer interval would
/// overflow: newer drivers (seen with 1.30) store it as microseconds in 32 bits, and would then check before each
/// command.
constexpr const char* options =
    "/?directConnection=true&retryReads=false&retryWrites=false&heartbeatFrequencyMS=2147483647"
    "&socketCheckIntervalMS=2000000&socketTimeoutMS=2147483647";

uri_ptr uri_of(const std::string& hosts)
{
    return uri_ptr(mongoc_uri_new(("mongodb://" + hosts + options).c_str()));
}

/// The credentials are never a part of the URI's text, in which they would have to be encoded.
void set_credentials(mongoc_uri_t& url, const credentials& login)
{
    mongoc_uri_set_username(&url, login.user.c_str());
    if (!login.password.empty())
        mongoc_uri_set_password(&url, login.password.c_str());
    mongoc_uri_set_auth_source(&url, login.source.c_str());
    if (!login.mechanism.empty())
        mongoc_uri_set_auth_mechanism(&url, login.mechanism.c_str());
}

/// Returns whether the driver reads the text as one host name. Other text may be read as the path of a socket, or as
/// two hosts that are separated by a comma.
bool is_plain(const std::string& host)
{
    return host.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") ==
           std::string::npos;
}

} // namespace

std::string destination::name() const
{
    return remote::to_text({host, port});
}

void uri_deleter::operator()(mongoc_uri_t* uri) const noexcept
{
    mongoc_uri_destroy(uri);
}

uri_ptr driver_uri(const destination& to)
{
    auto uri = is_plain(to.host) ? uri_of(to.name()) : nullptr;
    if (!uri)
        uri = uri_of("unnamed");
    BOOST_ASSERT_MSG(uri, "the URL is put together by us");
    mongoc_uri_set_option_as_int32(
        uri.get(), MONGOC_URI_CONNECTTIMEOUTMS, static_cast<std::int32_t>(to.connect_timeout.count()));
    if (to.login)
        set_credentials(*uri, *to.login);
    return uri;
}

} // namespace colock::inline v0::mongo::detail
