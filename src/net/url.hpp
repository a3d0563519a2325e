// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::remote {

struct endpoint
{
    std::string host;
    std::string port;

    friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// One `name=value` of a URL's query, still percent-encoded.
struct parameter
{
    std::string_view name;
    std::string_view value;
};

/// Returns `host:port`, with an IPv6 address in brackets.
[[nodiscard]] std::string to_text(const endpoint& endpoint);

/// The parts of a URL: `scheme://[[user]:password@]host[:port][,host[:port]]...[/path][?parameters]`.
///
/// docs/design/url-parser.md says why Boost.URL is not used.
///
/// Holds views into the text from which it was made. An invalid URL throws `validation_error` with `invalid_options`.
/// Because a URL may contain a password, the message quotes only parts of it that cannot be secret, such as the scheme
/// or the name of a parameter.
class url
{
public:
    struct identity
    {
        std::string user;
        std::optional<std::string> password;
    };

    /// \param backend the name of the backend for error messages
    /// \param example a valid URL for the error message if the scheme is missing
    url(std::string_view text, std::string_view backend, std::string_view example);

    /// Returns the scheme in lower case.
    [[nodiscard]] std::string_view scheme() const noexcept { return scheme_; }
    /// Returns everything after `scheme://`.
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
    /// Returns the text after the first '/', still percent-encoded.
    [[nodiscard]] std::string_view path() const noexcept { return path_; }
    /// Returns the first '?' or '#' and everything after it.
    [[nodiscard]] std::string_view parameters() const noexcept { return parameters_; }
    /// Returns the parameters after the first '?'. Rejects a '#' in them, and a parameter without a '='.
    [[nodiscard]] std::vector<parameter> query() const;
    /// Returns the text of the URL with another query, which is empty or begins with '?'.
    [[nodiscard]] std::string with_query(std::string_view query) const;

    /// Returns the decoded user and password; the user is empty if there is none.
    [[nodiscard]] identity credentials() const;
    /// Returns the hosts, at least one. A name is in lower case; a port is a number from 1 to 65535. Rejects a path
    /// that may be a misplaced part of the hosts or credentials.
    [[nodiscard]] std::vector<endpoint> hosts(std::string_view default_port) const;
    [[nodiscard]] std::size_t host_count() const;
    /// Returns one URL for each host; all other parts are repeated.
    [[nodiscard]] std::vector<std::string> split_by_host(std::string_view scheme) const;

    /// Percent-decodes a text. `part` names the part in an error message.
    [[nodiscard]] std::string decode(std::string_view text, std::string_view part) const;
    /// Parses a number up to `to`. An empty text is 0.
    [[nodiscard]] int parse_number(std::string_view text, unsigned to, std::string_view part) const;

    /// Rejects a '#' in front of the query.
    void check_no_fragment() const;
    /// Rejects a fragment, and each parameter of the query as one that is not known.
    /// \param known the names of all known parameters, for the error message
    void refuse_parameters(std::string_view known) const;
    /// \param name the encoded name. The error message does not contain it if it may be a part of a password.
    [[noreturn]] void refuse_unknown(std::string_view name, std::string_view known) const;
    [[noreturn]] void refuse(std::string reason) const;

private:
    [[noreturn]] void refuse_fragment() const;
    [[nodiscard]] endpoint parse_host(std::string_view text, std::string_view default_port) const;

    std::string_view backend_;
    std::string scheme_;
    std::string_view rest_;
    /// Includes the '@', if there is one.
    std::string_view credentials_;
    std::string_view hosts_;
    std::string_view path_;
    std::string_view parameters_;
};

/// Converts only ASCII letters, independent of the locale.
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

} // namespace colock::inline v0::remote
