// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/destination.hpp"

#include "net/url.hpp"

#include <boost/assert.hpp>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

namespace {

/// A connection that was idle for long is not looked at by the driver but by us. To it that time is one of 33 minutes:
/// newer ones (1.30 was seen) count it in microseconds, in 32 bits, and would else ask before each command.
constexpr const char* options =
    "/?directConnection=true&retryReads=false&retryWrites=false&heartbeatFrequencyMS=2147483647"
    "&socketCheckIntervalMS=2000000&socketTimeoutMS=2147483647&connectTimeoutMS=2000";

uri_ptr uri_of(const std::string& hosts)
{
    return uri_ptr(mongoc_uri_new(("mongodb://" + hosts + options).c_str()));
}

/// Never as a part of the URL's text, in which they would have to be encoded.
void set_credentials(mongoc_uri_t& url, const credentials& who)
{
    mongoc_uri_set_username(&url, who.user.c_str());
    if (!who.password.empty())
        mongoc_uri_set_password(&url, who.password.c_str());
    mongoc_uri_set_auth_source(&url, who.source.c_str());
    if (!who.mechanism.empty())
        mongoc_uri_set_auth_mechanism(&url, who.mechanism.c_str());
}

/// The driver takes a part of a URL for what it looks like: a path for a socket's, a comma for another host.
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

void uri_deleter::operator()(mongoc_uri_t* gone) const noexcept
{
    mongoc_uri_destroy(gone);
}

uri_ptr driver_uri(const destination& to)
{
    auto made = is_plain(to.host) ? uri_of(to.name()) : nullptr;
    if (!made)
        made = uri_of("unnamed");
    BOOST_ASSERT_MSG(made, "the URL is put together by us");
    if (to.as)
        set_credentials(*made, *to.as);
    return made;
}

} // namespace colock::mongo::detail
