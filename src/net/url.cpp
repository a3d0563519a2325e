// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url.hpp"

#include "util/option_errors.hpp"

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <charconv>
#include <locale>
#include <utility>

namespace colock::inline v0::remote {

namespace {

/// Characters of the names of hosts and parameters, in lower case.
constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

/// Returns the number that the whole text stands for, if it is in the range.
std::optional<int> number_in(std::string_view text, unsigned from, unsigned to, int base = 10)
{
    unsigned value = 0;
    const auto* const end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || parsed != end || value < from || value > to)
        return std::nullopt;
    return static_cast<int>(value);
}

} // namespace

std::string lower_case(std::string_view text)
{
    return boost::algorithm::to_lower_copy(std::string(text), std::locale::classic());
}

std::string to_text(const endpoint& endpoint)
{
    const bool numeric_v6 = endpoint.host.find(':') != std::string::npos;
    return (numeric_v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + endpoint.port;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    boost::algorithm::split(parts, text, [separator](char c) { return c == separator; });
    return parts;
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
    const bool may_be_shown =
        name.size() <= 40 && lower_case(name).find_first_not_of(name_characters) == std::string::npos;
    refuse("the URL has a parameter that is not known" + (may_be_shown ? ": " + std::string(name) : "") +
           "; those that are: " + std::string(known));
}

void url::refuse_fragment() const
{
    refuse("the URL has a fragment; a '#' in a password or a parameter is written %23");
}

void url::refuse(std::string reason) const
{
    colock::detail::refuse_options(backend_, std::move(reason));
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
    const bool is_v6 = text.starts_with('[');
    const auto end = is_v6 ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == std::string_view::npos)
        refuse("the URL has an IPv6 address without its closing ']'");
    const auto host = is_v6 ? text.substr(1, end - 1) : text.substr(0, end);
    // Includes the ':', if there is one.
    const auto port = text.substr(is_v6 ? end + 1 : end);
    if (!port.empty() && !port.starts_with(':'))
        refuse("the URL has something other than ':port' behind an IPv6 address");
    if (host.empty())
        refuse("the URL names no host");
    const auto name = lower_case(decode(host, "host"));
    boost::system::error_code no_address;
    if (is_v6)
        static_cast<void>(boost::asio::ip::make_address_v6(name, no_address));
    if (no_address)
        refuse("the URL has something other than an IPv6 address between '[' and ']'");
    const auto is_in_host_name = [](char c) {
        return name_characters.find(c) != std::string_view::npos || static_cast<unsigned char>(c) > 127;
    };
    if (!is_v6 && !std::ranges::all_of(name, is_in_host_name))
        refuse("the URL has a host with a character that no host's name has; write each as host or host:port, without "
               "spaces");
    if (port.empty())
        return {name, std::string(default_port)};
    const auto number = number_in(port.substr(1), 1, 65535);
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

std::string url::decode(std::string_view text, std::string_view part) const
{
    const auto piece = [part] { return "the URL's " + std::string(part); };
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const auto digits = text.substr(i + 1, 2);
            const auto byte = number_in(digits, 0, 255, 16);
            if (!byte || digits.size() < 2)
                refuse(piece() + " has a '%' without two hexadecimal digits behind it");
            c = static_cast<char>(*byte);
            i += 2;
        }
        if (c == '\0' || c == '\r' || c == '\n')
            refuse(piece() + " holds a control character");
        plain += c;
    }
    return plain;
}

int url::parse_number(std::string_view text, unsigned to, std::string_view part) const
{
    if (text.empty())
        return 0;
    const auto value = number_in(text, 0, to);
    if (!value)
        refuse("the URL's " + std::string(part) + " is not a number from 0 to " + std::to_string(to));
    return *value;
}

} // namespace colock::inline v0::remote
