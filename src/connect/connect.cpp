// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/connect.hpp>

#include "connect/memory.hpp"
#include "util/option_errors.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace colock::inline v0 {

namespace {

bool has_scheme(const url_backend& each, std::string_view scheme)
{
    return !scheme.empty() && std::ranges::find(each.schemes, scheme) != each.schemes.end();
}

std::string forms_of(const std::vector<url_backend>& backends)
{
    std::string forms(detail::memory_by_url.forms);
    for (const auto& each : backends)
        (forms += ", ") += each.forms;
    return forms;
}

/// Namespace and component of the backend of colock that has the scheme. Empty: none has it.
std::string_view component_with(std::string_view scheme)
{
    if (scheme == "redis" || scheme == "rediss")
        return "redis";
    if (scheme == "zookeeper")
        return "zookeeper";
    return scheme == "mongodb" ? "mongo" : "";
}

} // namespace

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view text,
    const std::vector<url_backend>& backends, connect_options options)
{
    std::string url(text);
    // Schemes are compared in lower case, independent of the locale.
    for (char& c : std::span(url).first(std::min(url.find(':'), url.size()))) {
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    }
    if (url.empty())
        detail::refuse_options({}, "the URL is empty; use one of " + forms_of(backends));
    const auto scheme = std::string_view(url).substr(0, url.find(':'));
    const auto family = scheme.substr(0, scheme.find('+'));
    if (scheme.size() < url.size()) {
        if (has_scheme(detail::memory_by_url, family))
            return detail::memory_by_url.make(executor, url, options);
        for (const auto& each : backends) {
            if (!has_scheme(each, family))
                continue;
            if (!each.make)
                detail::refuse_options(
                    {}, "the url_backend for " + std::string(family) + ": URLs has no make function");
            return each.make(executor, url, options);
        }
        if (const std::string name(component_with(family)); !name.empty()) {
            detail::refuse_options({}, "this program has no backend for " + std::string(family) +
                                           ": URLs: link colock::" + name + ", and pass colock::" + name +
                                           "::by_url to make_adapter");
        }
    }
    detail::refuse_options({}, "the URL's scheme is not known; use one of " + forms_of(backends));
}

} // namespace colock::inline v0
