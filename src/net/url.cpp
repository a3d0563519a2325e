// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url.hpp"

#include "util/option_errors.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace colock::inline v0::remote {

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
    if (text.starts_with('-'))
        return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < from || value > to)
        return std::nullopt;
    return value;
}

bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_in_option_name(char c)
{
    return is_alphanumeric(c) || c == '_' || c == '-' || c == '.';
}

/// `c` is in lower case.
bool is_in_host_name(char c)
{
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || static_cast<unsigned char>(c) > 127;
}

} // namespace

std::string lower_case(std::string_view text)
{
    std::string lower(text);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

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
        refuse("the URL has no '://' behind a scheme; write " + std::string(example));
    scheme_ = lower_case(text.substr(0, scheme_end));
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
    // Otherwise, hosts in front of the last '@' would be parsed as a part of the user or the password.
    if (credentials_.find(',') != std::string_view::npos)
        refuse("the URL has a ',' in front of its last '@'; write user and password once, in front of all hosts, and a "
               "',' in them as %2C");
}

std::vector<parameter> url::query() const
{
    // Everything in front of the last '@' may be a password.
    if (rest_.find('@', rest_.find('?')) != std::string_view::npos)
        refuse("the URL has an '@' behind its first '?'; a '?' in a user or password is written %3F, and an '@' in a "
               "parameter %40");
    // Not parameters_: the path of a unix socket may contain '#'.
    const auto begin = rest_.find('?');
    if (begin == std::string_view::npos)
        return {};
    const auto text = rest_.substr(begin + 1);
    if (text.find('#') != std::string_view::npos)
        refuse_fragment();
    std::vector<parameter> found;
    for (const auto each : split(text, '&')) {
        if (each.empty())
            continue;
        const auto equals = each.find('=');
        if (equals == std::string_view::npos)
            refuse("the URL has a parameter without a value; a '?' in a password is written %3F");
        found.push_back({each.substr(0, equals), each.substr(equals + 1)});
    }
    return found;
}

std::string url::with_query(std::string_view query) const
{
    return scheme_ + "://" + std::string(rest_.substr(0, rest_.find('?'))) + std::string(query);
}

void url::check_no_fragment() const
{
    if (parameters_.starts_with('#'))
        refuse_fragment();
}

void url::refuse_parameters(std::string_view known) const
{
    check_no_fragment();
    for (const auto& each : query())
        refuse_unknown(each.name, known);
}

void url::refuse_unknown(std::string_view name, std::string_view known) const
{
    const bool may_be_shown = name.size() <= 40 && std::ranges::all_of(name, is_in_option_name);
    refuse("the URL has a parameter that is not known" + (may_be_shown ? ": " + std::string(name) : "") +
           "; those that are: " + std::string(known));
}

void url::refuse_fragment() const
{
    refuse("the URL has a fragment; a '#' in a password or a parameter is written %23");
}

void url::refuse(std::string why) const
{
    colock::detail::refuse_options(backend_, std::move(why));
}

url::identity url::credentials() const
{
    if (credentials_.empty())
        return {};
    const auto text = credentials_.substr(0, credentials_.size() - 1);
    const auto colon = text.find(':');
    identity found{decode(text.substr(0, colon), "user"), std::nullopt};
    if (colon != std::string_view::npos)
        found.password = decode(text.substr(colon + 1), "password");
    return found;
}

std::size_t url::host_count() const
{
    return split(hosts_, ',').size();
}

std::vector<endpoint> url::hosts(std::string_view default_port) const
{
    if (path_.find(',') != std::string_view::npos)
        refuse("the URL has a ',' behind its first '/'; write all hosts in front of one path, " + scheme_ +
               "://host:port,host:port/path, and a ',' in the path as %2C");
    if (path_.find('@') != std::string_view::npos)
        refuse("the URL has an '@' behind its first '/'; a '/' in a user or password is written %2F, and an '@' in the "
               "path %40");
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
    const auto name = lower_case(decode(host, "host"));
    boost::system::error_code no_address;
    if (text.starts_with('['))
        static_cast<void>(boost::asio::ip::make_address_v6(name, no_address));
    if (no_address)
        refuse("the URL has something other than an IPv6 address between '[' and ']'");
    if (!text.starts_with('[') && !std::ranges::all_of(name, is_in_host_name))
        refuse("the URL has a host with a character that no host's name has; write each as host or host:port, without "
               "spaces");
    if (!has_port)
        return {name, std::string(default_port)};
    const auto number = number_in(port, 1, 65535);
    if (!number)
        refuse("the URL's port is not a number from 1 to 65535");
    return {name, std::to_string(*number)};
}

std::vector<std::string> url::split_by_host(std::string_view scheme) const
{
    std::vector<std::string> urls;
    const auto suffix = rest_.substr(credentials_.size() + hosts_.size());
    for (const auto host : split(hosts_, ',')) {
        std::string one_url(scheme);
        ((((one_url += "://") += credentials_) += host) += suffix);
        urls.push_back(std::move(one_url));
    }
    return urls;
}

std::string url::decode(std::string_view text, std::string_view what) const
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

int url::parse_number(std::string_view text, int to, std::string_view what) const
{
    if (text.empty())
        return 0;
    const auto value = number_in(text, 0, to);
    if (!value)
        refuse("the URL's " + std::string(what) + " is not a number from 0 to " + std::to_string(to));
    return *value;
}

} // namespace colock::inline v0::remote
