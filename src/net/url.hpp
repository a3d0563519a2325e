// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::remote {

struct endpoint
{
    std::string host;
    std::string port;

    friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// `host:port`, an IPv6 address in brackets.
[[nodiscard]] std::string to_text(const endpoint& where);

/// An URL taken apart: `scheme://[[user]:password@]host[:port][,host[:port]]...[/path][?parameters]`.
///
/// Boost.URL is no help here: the authority of RFC 3986 has one host, passwords are pasted as they are, and its errors
/// would not say which piece to mend.
///
/// Views into the text that it was made from. What is refused throws `validation_error` with `invalid_options`; the
/// message says what is wrong, not what was given: it may hold a password.
class url
{
public:
    struct identity
    {
        std::string user;
        std::optional<std::string> password;
    };

    /// \param backend who refuses it
    /// \param example to write instead, if there is no scheme
    url(std::string_view text, std::string_view backend, std::string_view example);

    /// In lower case.
    [[nodiscard]] std::string_view scheme() const noexcept { return scheme_; }
    /// All behind `scheme://`.
    [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
    /// Behind the first '/', without it; still encoded.
    [[nodiscard]] std::string_view path() const noexcept { return path_; }
    /// The '?' or '#' and what is behind it.
    [[nodiscard]] std::string_view parameters() const noexcept { return parameters_; }

    [[nodiscard]] identity who() const;
    /// At least one. A name is in lower case; a port is a number from 1 to 65535. Refuses a path that hosts or
    /// credentials may have been mistaken for.
    [[nodiscard]] std::vector<endpoint> hosts(std::string_view default_port) const;
    [[nodiscard]] std::size_t host_count() const;
    /// One URL for each host, with all else repeated.
    [[nodiscard]] std::vector<std::string> of_each_host(std::string_view scheme) const;

    /// Percent-decoded. `what` names the piece in a refusal.
    [[nodiscard]] std::string decoded(std::string_view text, std::string_view what) const;
    /// Without text 0.
    [[nodiscard]] int number(std::string_view text, int to, std::string_view what) const;

    [[noreturn]] void refuse(std::string why) const;

private:
    [[nodiscard]] endpoint parse_host(std::string_view text, std::string_view default_port) const;

    std::string_view backend_;
    std::string scheme_;
    std::string_view rest_;
    /// With the '@', if there is one.
    std::string_view credentials_;
    std::string_view hosts_;
    std::string_view path_;
    std::string_view parameters_;
};

/// Letters of ASCII only, whatever the locale is.
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

} // namespace colock::remote
