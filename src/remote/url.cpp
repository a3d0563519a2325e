// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/url.hpp"

#include "core/option_errors.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace colock::remote {

namespace {

int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

std::optional<int> number_in(std::string_view text, int from, int to)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < from || value > to)
        return std::nullopt;
    return value;
}

} // namespace

std::string to_text(const endpoint& where)
{
    const bool numeric_v6 = where.host.find(':') != std::string::npos;
    return (numeric_v6 ? "[" + where.host + "]" : where.host) + ":" + where.port;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos)
            return parts;
        text.remove_prefix(end + 1);
    }
}

url::url(std::string_view text, std::string_view backend, std::string_view example) : backend_(backend)
{
    const auto scheme_end = text.find("://");
    if (scheme_end == std::string_view::npos)
        refuse("the URL has no scheme; write " + std::string(example));
    scheme_ = text.substr(0, scheme_end);
    rest_ = text.substr(scheme_end + 3);
    const auto path_end = std::min(rest_.find_first_of("?#"), rest_.size());
    parameters_ = rest_.substr(path_end);
    hosts_ = rest_.substr(0, path_end);
    if (const auto slash = hosts_.find('/'); slash != std::string_view::npos) {
        path_ = hosts_.substr(slash + 1);
        hosts_ = hosts_.substr(0, slash);
    }
    if (const auto at = hosts_.rfind('@'); at != std::string_view::npos) {
        credentials_ = hosts_.substr(0, at + 1);
        hosts_.remove_prefix(at + 1);
    }
}

void url::refuse(std::string why) const
{
    colock::detail::refuse_options(backend_, std::move(why));
}

url::identity url::who() const
{
    if (credentials_.empty())
        return {};
    const auto text = credentials_.substr(0, credentials_.size() - 1);
    const auto colon = text.find(':');
    identity found{decoded(text.substr(0, colon), "user"), std::nullopt};
    if (colon != std::string_view::npos)
        found.password = decoded(text.substr(colon + 1), "password");
    return found;
}

std::size_t url::host_count() const
{
    return split(hosts_, ',').size();
}

std::vector<endpoint> url::hosts(std::string_view default_port) const
{
    std::vector<endpoint> found;
    for (const auto each : split(hosts_, ','))
        found.push_back(parse_host(each, default_port));
    return found;
}

endpoint url::parse_host(std::string_view text, std::string_view default_port) const
{
    std::string_view host = text;
    std::string_view port;
    bool has_port = false;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos)
            refuse("the URL has an IPv6 address without its closing ']'");
        host = text.substr(1, end - 1);
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && !rest.starts_with(':'))
            refuse("the URL has something other than ':port' behind an IPv6 address");
        has_port = !rest.empty();
        port = has_port ? rest.substr(1) : rest;
    } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
        has_port = true;
    }
    if (host.empty())
        refuse("the URL names no host");
    if (has_port && !number_in(port, 1, 65535))
        refuse("the URL's port is not a number from 1 to 65535");
    return {decoded(host, "host"), std::string(has_port ? port : default_port)};
}

std::vector<std::string> url::of_each_host(std::string_view scheme) const
{
    std::vector<std::string> urls;
    const auto behind = rest_.substr(credentials_.size() + hosts_.size());
    for (const auto host : split(hosts_, ',')) {
        std::string one(scheme);
        ((((one += "://") += credentials_) += host) += behind);
        urls.push_back(std::move(one));
    }
    return urls;
}

std::string url::decoded(std::string_view text, std::string_view what) const
{
    const auto piece = [what] { return "the URL's " + std::string(what); };
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                refuse(piece() + " has a '%' without two hexadecimal digits behind it");
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || c == '\r' || c == '\n')
            refuse(piece() + " holds a control character");
        plain += c;
    }
    return plain;
}

int url::number(std::string_view text, int to, std::string_view what) const
{
    if (text.empty())
        return 0;
    const auto value = number_in(text, 0, to);
    if (!value)
        refuse("the URL's " + std::string(what) + " is not a number from 0 to " + std::to_string(to));
    return *value;
}

} // namespace colock::remote
