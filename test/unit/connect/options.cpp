// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "../../../tools/built_backends.hpp"

#include <colock/error.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// A row of the table of options in docs/.
struct row
{
    std::string option;
    std::string url_key;
    std::string range;
};

/// A backend, and the page that lists its options.
struct page
{
    std::string url;
    std::string file;
    /// Parameters that are no options of colock.
    std::set<std::string> other_keys{};
};

const page pages[] = {
    {"memory:", "guide-operation.md"},
    {"redis://127.0.0.1", "redis.md"},
    {"redis+unix:///s", "redis.md", {"db"}},
    {"redis+quorum://a,b,c", "redis.md"},
    {"zookeeper://127.0.0.1", "zookeeper.md"},
    {"mongodb://127.0.0.1", "mongodb.md",
        {"replicaSet", "directConnection", "authSource", "authMechanism", "tls", "tlsCAFile", "tlsCertificateKeyFile",
            "w", "appName", "retryWrites", "retryReads"}},
};

std::vector<std::string> split_by(std::string text, const char* separators)
{
    std::vector<std::string> parts;
    boost::split(parts, text, boost::is_any_of(separators));
    for (auto& each : parts)
        boost::trim_if(each, boost::is_any_of(" `"));
    return parts;
}

std::vector<row> read_table(const std::string& file)
{
    std::ifstream text(COLOCK_DOCS "/" + file);
    std::vector<row> rows;
    bool is_inside = false;
    for (std::string line; std::getline(text, line);) {
        if (line.starts_with("| option | in the URL | default | range |")) {
            is_inside = true;
            std::getline(text, line);
        } else if (is_inside && line.starts_with("|")) {
            const auto cells = split_by(line, "|");
            rows.push_back({cells.at(1), cells.at(2), cells.at(4)});
        } else {
            is_inside = false;
        }
    }
    BOOST_TEST_REQUIRE(!rows.empty(), file);
    return rows;
}

/// Returns the error message, or nothing if the URL is accepted.
std::string refusal_of(const std::string& url, const connect_options& options = {},
    const std::vector<url_backend>& backends = tools::built_backends())
{
    asio::io_context io;
    try {
        static_cast<void>(make_adapter(io.get_executor(), url, backends, options));
    } catch (const validation_error& refused) {
        BOOST_TEST((refused.code() == errc::invalid_options));
        BOOST_TEST(std::string(refused.what()).find("secret") == std::string::npos, refused.what());
        return refused.detail();
    }
    return {};
}

bool is_built(const page& of)
{
    return refusal_of(of.url).find("this program has no backend for") == std::string::npos;
}

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(connect_options_by_url)

BOOST_AUTO_TEST_CASE(pages_list_exactly_the_keys_that_are_known)
{
    for (const auto& each : pages) {
        BOOST_TEST_CONTEXT(each.url)
        {
            if (!is_built(each))
                continue;
            const auto refusal = refusal_of(each.url + "?conect_timeout=1s");
            const std::string list = "; those that are: ";
            BOOST_TEST_REQUIRE(contains(refusal, "a parameter that is not known: conect_timeout" + list), refusal);
            const auto names = split_by(refusal.substr(refusal.find(list) + list.size()), ",");
            auto documented = each.other_keys;
            for (const auto& row : read_table(each.file)) {
                if (row.url_key == row.option)
                    documented.insert(row.option);
                else
                    BOOST_TEST((row.url_key.empty() || row.url_key.starts_with("in front of the host")), row.option);
            }
            BOOST_TEST(
                (std::set(names.begin(), names.end()) == documented), refusal + " is not what " + each.file + " lists");
        }
    }
}

BOOST_AUTO_TEST_CASE(value_outside_the_documented_range_is_refused)
{
    const std::map<std::string, long long> factors{
        {"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}, {"years", 365LL * 24 * 3'600'000}};
    const std::regex range("([0-9]+) ?([a-z]*) to ([0-9]+) ?([a-z]*)");
    for (const auto& each : pages) {
        if (!is_built(each))
            continue;
        int checked = 0;
        for (const auto& row : read_table(each.file)) {
            std::smatch found;
            if (row.url_key != row.option || row.range.ends_with("bytes") || !std::regex_match(row.range, found, range))
                continue;
            const auto first = std::stoll(found[1]) * factors.at(found[2]);
            const auto last = std::stoll(found[3]) * factors.at(found[4]);
            const std::string unit = found[4].length() == 0 ? "" : "ms";
            const auto refusal_of_value = [&](long long value) {
                return refusal_of(each.url + "?" + row.option + "=" + std::to_string(value) + unit);
            };
            BOOST_TEST_CONTEXT(each.url << ' ' << row.option)
            {
                BOOST_TEST(refusal_of_value(first) == "");
                BOOST_TEST(refusal_of_value(last) == "");
                BOOST_TEST(contains(refusal_of_value(last + 1), row.option));
                if (first > 0)
                    BOOST_TEST(contains(refusal_of_value(first - 1), row.option));
            }
            ++checked;
        }
        BOOST_TEST((checked > 0 || each.file == "guide-operation.md"), each.url);
    }
}

BOOST_AUTO_TEST_CASE(error_of_an_invalid_query_does_not_quote_its_values)
{
    for (const auto& each : pages) {
        if (!is_built(each))
            continue;
        const std::string first = each.file == "guide-operation.md" ? "sweep_interval" : "idle_timeout";
        const std::pair<std::string, std::string> refused[] = {
            {"?" + first + "=1s&" + first + "=1s", "the URL's " + first + " is given twice"},
            {"?" + first + "=500", "the URL's " + first + " has no unit"},
            {"?" + first + "=secret", "the URL's " + first + " is not a duration"},
            {"?" + first + "=", "the URL's " + first + " is not a duration"},
            {"?" + first + "=%zz", "the URL's " + first + " has a '%'"},
            {"?" + first, "a parameter without a value"},
            {"?" + first + "=1s#secret", "a fragment"},
            {"?" + first + "s=secret", "not known: " + first + "s; those that are: "},
            {"?idle-timeout=secret", "not known: idle-timeout; those that are: "},
            {"?ss=x@secret", "an '@' behind its first '?'"},
            {"?" + first + "=1s@secret", "an '@' behind its first '?'"},
            {"?secret%3D=x", "a parameter that is not known; those"},
        };
        for (const auto& [query, why] : refused) {
            BOOST_TEST_CONTEXT(each.url << query)
            {
                const auto refusal = refusal_of(each.url + query);
                BOOST_TEST(contains(refusal, why), refusal);
            }
        }
        BOOST_TEST(refusal_of(each.url + "?" + first + "=2m") == "");
        BOOST_TEST(refusal_of(each.url + "?" + first + "=max&") == "");
    }
    BOOST_TEST(contains(refusal_of(""), "the URL is empty; use one of memory:"));
    BOOST_TEST(contains(refusal_of("memory:secret?sweep_batch=1"), "something behind its scheme"));
    BOOST_TEST(contains(refusal_of("memory:?sweep_batch=0"), "sweep_batch"));
    BOOST_TEST(refusal_of("memory://?sweep_batch=1") == "");
}

BOOST_AUTO_TEST_CASE(backend_that_the_program_does_not_pass_is_named)
{
    const auto refusal_without_backends = [](const std::string& url) { return refusal_of(url, {}, {}); };
    const std::pair<std::string, std::string> known[] = {
        {"redis://h", "redis"},
        {"REDISS+quorum://u:secret@a,b,c", "redis"},
        {"zookeeper://h", "zookeeper"},
        {"mongodb://u:secret@h", "mongo"},
    };
    for (const auto& [url, component] : known) {
        const auto refusal = refusal_without_backends(url);
        BOOST_TEST(refusal.starts_with("this program has no backend for "), refusal);
        BOOST_TEST(
            contains(refusal, "link colock::" + component + ", and pass colock::" + component + "::by_url"), refusal);
    }
    BOOST_TEST(contains(refusal_without_backends("etcd://h"), "use one of memory:"));
    BOOST_TEST(refusal_without_backends("memory:") == "");
}

BOOST_AUTO_TEST_CASE(program_can_pass_a_backend_of_its_own)
{
    const url_backend own{
        .schemes = {"own"},
        .forms = "own://name",
        .make =
            [](const asio::any_io_executor& executor, std::string_view url, const connect_options& options) {
                BOOST_TEST(url == "own+kind://u@Name");
                BOOST_TEST(options.user == "u");
                return memory::make_adapter(executor);
            },
    };
    BOOST_TEST(refusal_of("OWN+Kind://u@Name", {.user = "u"}, {own}) == "");
    BOOST_TEST(contains(refusal_of("own:", {}, {{.schemes = {"own"}, .forms = "own:"}}), "has no make function"));
    BOOST_TEST(contains(refusal_of("own", {}, {own}), "use one of memory:, own://name"));
    BOOST_TEST(contains(refusal_of("://h", {}, {own}), "use one of memory:, own://name"));
}

BOOST_AUTO_TEST_CASE(credentials_are_accepted_unless_they_differ_from_the_url)
{
    const connect_options full{.user = "app", .password = "secret"};
    for (const std::string scheme : {"redis", "zookeeper", "mongodb"}) {
        if (!is_built({scheme + "://h", ""}))
            continue;
        BOOST_TEST_CONTEXT(scheme)
        {
            BOOST_TEST(refusal_of(scheme + "://h", full) == "");
            BOOST_TEST(refusal_of(scheme + "://app@h", full) == "");
            BOOST_TEST(refusal_of(scheme + "://app@h", {.password = "secret"}) == "");
            BOOST_TEST(refusal_of(scheme + "://app:secret@h", full) == "");
            BOOST_TEST(contains(refusal_of(scheme + "://app@h"), "without a password"));
            BOOST_TEST(contains(refusal_of(scheme + "://secret:secret@h", full), "the URL's user differs"));
            BOOST_TEST(contains(refusal_of(scheme + "://app:secret2@h", full), "the URL's password differs"));
            BOOST_TEST(contains(refusal_of(scheme + "://h", {.tls = {.ca_file = "/secret.pem"}}), "TLS"));
        }
    }
    BOOST_TEST(contains(refusal_of("memory:", full), "no user"));
    BOOST_TEST(contains(refusal_of("memory:", {.tls = {.ca_file = "/secret.pem"}}), "no TLS"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
