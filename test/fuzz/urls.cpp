// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// URLs and their parameters are user input. They are accepted or refused with a validation_error, whose message never
// contains a password.
#include "fuzz/fuzz.hpp"

#include "mongo/settings.hpp"
#include "mongo/url.hpp"
#include "redis/settings.hpp"
#include "redis/url.hpp"
#include "zookeeper/settings.hpp"
#include "zookeeper/url.hpp"

#include <colock/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace {

using colock::testing::require;

constexpr std::string_view password = "pA55w0rd";

/// Parses the URL as `make_adapter` does.
template <class Settings, auto TakeUrlOptions, class Options>
void parse(const std::string& url)
{
    try {
        Options options;
        options.url = url;
        static_cast<void>(Settings(TakeUrlOptions(std::move(options))));
    } catch (const colock::validation_error& refused) {
        require(refused.code() == colock::errc::invalid_options, "the code of a refused URL is invalid_options");
        require(std::string_view(refused.what()).find(password) == std::string_view::npos,
            "no message contains a password");
    }
}

} // namespace

/// The first byte selects the backend, and whether the rest is a URL or what follows a password in one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace colock;
    const auto text = colock::testing::text_of(data, size);
    if (text.empty() || text.find(password) != text.npos)
        return 0;
    const auto selected = text.front();
    std::string url(text.substr(1));
    const auto put_behind_password = [&](std::string_view scheme) {
        url.insert(0, std::string(scheme) + "://user:" + std::string(password) + "@");
    };
    switch (selected) {
    case 'R':
        put_behind_password("redis");
        [[fallthrough]];
    case 'r':
        parse<redis::detail::settings, &redis::detail::take_url_options, redis::options>(url);
        break;
    case 'Z':
        put_behind_password("zookeeper");
        [[fallthrough]];
    case 'z':
        parse<zookeeper::detail::settings, &zookeeper::detail::take_url_options, zookeeper::options>(url);
        break;
    case 'M':
        put_behind_password("mongodb");
        [[fallthrough]];
    case 'm':
        parse<mongo::detail::settings, &mongo::detail::take_url_options, mongo::options>(url);
        break;
    default:
        return -1;
    }
    return 0;
}
