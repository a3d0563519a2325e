// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/connect.hpp>

#include "connect/backends.hpp"
#include "util/option_errors.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace colock::inline v0 {

namespace {

std::string all_forms()
{
    std::string forms;
    for (const auto& each : detail::backends())
        (forms += forms.empty() ? "" : ", ") += each.forms;
    return forms;
}

} // namespace

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view given, connect_options options)
{
    std::string url(given);
    // Schemes are compared in lower case, independent of the locale.
    for (char& c : std::span(url).first(std::min(url.find(':'), url.size()))) {
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    }
    if (url.empty())
        detail::refuse_options({}, "the URL is empty; use one of " + all_forms());
    const auto scheme = std::string_view(url).substr(0, url.find(':'));
    const auto family = scheme.substr(0, scheme.find('+'));
    const auto all = detail::backends();
    const auto named = std::ranges::find_if(all, [&](const detail::backend& each) {
        return !family.empty() && std::ranges::find(each.schemes, family) != each.schemes.end();
    });
    if (named == all.end() || scheme.size() == url.size())
        detail::refuse_options({}, "the URL's scheme is not known; use one of " + all_forms());
    if (!named->connect)
        detail::refuse_options({}, std::string(named->refusal));
    return named->connect(executor, url, options);
}

} // namespace colock::inline v0
