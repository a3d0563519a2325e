// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/servers.hpp"
#include "command/doctor/text.hpp"
#include "net/url.hpp"

#include <mongoc/mongoc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

namespace {

namespace remote = colock::remote;

using std::chrono::steady_clock;

constexpr std::int32_t connect_timeout_ms = 2000;

template <auto Destroy>
struct destroyer
{
    template <class T>
    void operator()(T* object) const
    {
        Destroy(object);
    }
};
using uri_ptr = std::unique_ptr<mongoc_uri_t, destroyer<&mongoc_uri_destroy>>;
using client_ptr = std::unique_ptr<mongoc_client_t, destroyer<&mongoc_client_destroy>>;

/// The parameters of the URL that matter to a connection, by their names in lower case.
struct mongo_parameters
{
    std::string user{};
    std::string password{};
    std::string database{};
    std::string collection = "locks";
    std::string auth_source{};
    std::string auth_mechanism{};
    bool tls = false;
    std::string ca_file{};
    std::string certificate_key_file{};
};

mongo_parameters read_parameters(const remote::url& from, const backend_address& address)
{
    mongo_parameters result;
    auto [user, password] = from.credentials();
    result.user = std::move(user);
    result.password = address.password.empty() ? std::move(password).value_or("") : address.password;
    result.database = from.decode(from.path(), "database");
    result.auth_source = result.database;
    if (result.database == "admin" || result.database == "local" || result.database == "config")
        result.database.clear();
    for (const auto& each : from.query()) {
        const auto name = remote::lower_case(each.name);
        auto value = from.decode(each.value, name);
        if (name == "database")
            result.database = std::move(value);
        else if (name == "collection")
            result.collection = std::move(value);
        else if (name == "authsource")
            result.auth_source = std::move(value);
        else if (name == "authmechanism")
            result.auth_mechanism = std::move(value);
        else if (name == "tls" || name == "ssl")
            result.tls = value == "true";
        else if (name == "tls.ca_file" || name == "tlscafile")
            result.ca_file = std::move(value);
        else if (name == "tls.key_file" || name == "tlscertificatekeyfile")
            result.certificate_key_file = std::move(value);
    }
    if (result.database.empty())
        result.database = "colock";
    if (result.auth_source.empty())
        result.auth_source = "admin";
    return result;
}

client_ptr connect(const remote::endpoint& server, const mongo_parameters& parameters)
{
    const auto port = static_cast<std::uint16_t>(std::stoi(server.port));
    const uri_ptr uri(mongoc_uri_new_for_host_port(server.host.c_str(), port));
    mongoc_uri_set_option_as_bool(uri.get(), MONGOC_URI_DIRECTCONNECTION, true);
    for (const auto* each : {MONGOC_URI_CONNECTTIMEOUTMS, MONGOC_URI_SERVERSELECTIONTIMEOUTMS})
        mongoc_uri_set_option_as_int32(uri.get(), each, connect_timeout_ms);
    mongoc_uri_set_option_as_int32(uri.get(), MONGOC_URI_SOCKETTIMEOUTMS, 2 * connect_timeout_ms);
    if (!parameters.user.empty()) {
        mongoc_uri_set_username(uri.get(), parameters.user.c_str());
        mongoc_uri_set_auth_source(uri.get(), parameters.auth_source.c_str());
        if (!parameters.password.empty())
            mongoc_uri_set_password(uri.get(), parameters.password.c_str());
        if (!parameters.auth_mechanism.empty())
            mongoc_uri_set_auth_mechanism(uri.get(), parameters.auth_mechanism.c_str());
    }
    if (parameters.tls) {
        mongoc_uri_set_option_as_bool(uri.get(), MONGOC_URI_TLS, true);
        if (!parameters.ca_file.empty())
            mongoc_uri_set_option_as_utf8(uri.get(), MONGOC_URI_TLSCAFILE, parameters.ca_file.c_str());
        if (!parameters.certificate_key_file.empty())
            mongoc_uri_set_option_as_utf8(
                uri.get(), MONGOC_URI_TLSCERTIFICATEKEYFILE, parameters.certificate_key_file.c_str());
    }
    return client_ptr(mongoc_client_new_from_uri(uri.get()));
}

/// The reply to a command.
class mongo_reply
{
public:
    /// \param command in JSON
    mongo_reply(mongoc_client_t* client, const std::string& database, const std::string& command)
    {
        bson_error_t problem;
        bson_t body;
        bson_init_from_json(&body, command.data(), static_cast<ssize_t>(command.size()), &problem);
        const auto begin = steady_clock::now();
        if (!mongoc_client_command_simple(client, database.c_str(), &body, nullptr, &reply_, &problem))
            error_ = problem.message;
        duration_ = steady_clock::now() - begin;
        bson_destroy(&body);
    }
    mongo_reply(const mongo_reply&) = delete;
    mongo_reply& operator=(const mongo_reply&) = delete;
    ~mongo_reply() { bson_destroy(&reply_); }

    /// Returns why the command failed; empty otherwise.
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] steady_clock::duration duration() const { return duration_; }

    /// Returns a value, whose path has points between its parts; empty if there is none.
    [[nodiscard]] std::string text(const char* path) const
    {
        bson_iter_t found;
        if (!find(path, found))
            return {};
        if (BSON_ITER_HOLDS_UTF8(&found))
            return bson_iter_utf8(&found, nullptr);
        if (BSON_ITER_HOLDS_BOOL(&found))
            return bson_iter_bool(&found) ? "true" : "false";
        return {};
    }
    [[nodiscard]] std::optional<std::int64_t> date(const char* path) const
    {
        bson_iter_t found;
        if (!find(path, found) || !BSON_ITER_HOLDS_DATE_TIME(&found))
            return std::nullopt;
        return bson_iter_date_time(&found);
    }
    [[nodiscard]] std::vector<std::string> list(const char* path) const
    {
        std::vector<std::string> texts;
        bson_iter_t found;
        bson_iter_t each;
        if (!find(path, found) || !BSON_ITER_HOLDS_ARRAY(&found) || !bson_iter_recurse(&found, &each))
            return texts;
        while (bson_iter_next(&each)) {
            if (BSON_ITER_HOLDS_UTF8(&each))
                texts.emplace_back(bson_iter_utf8(&each, nullptr));
        }
        return texts;
    }

private:
    bool find(const char* path, bson_iter_t& found) const
    {
        bson_iter_t fields;
        return bson_iter_init(&fields, &reply_) && bson_iter_find_descendant(&fields, path, &found);
    }

    bson_t reply_;
    std::string error_{};
    steady_clock::duration duration_{};
};

/// Compares the server's clock with that of this machine, by the fastest of some replies.
void measure_clock(mongoc_client_t* client, server_values& values)
{
    using std::chrono::milliseconds;
    using std::chrono::system_clock;
    auto fastest = steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
        const auto sent_at = system_clock::now();
        const mongo_reply hello(client, "admin", R"({"hello":1})");
        const auto time = hello.date("localTime");
        if (!time || hello.duration() >= fastest)
            continue;
        fastest = hello.duration();
        const auto middle = std::chrono::duration_cast<milliseconds>((sent_at + fastest / 2).time_since_epoch());
        values.set("clock_offset", std::to_string(*time - middle.count()));
        values.set("round_trip", milliseconds_text(fastest));
    }
}

std::string state_of(const mongo_reply& hello)
{
    if (hello.text("isWritablePrimary") == "true")
        return "primary";
    if (hello.text("secondary") == "true")
        return "secondary";
    return hello.text("arbiterOnly") == "true" ? "arbiter" : "neither primary nor secondary";
}

/// Values of the replica set, or of the server without one.
struct replica_set
{
    std::vector<std::string> hosts{};
    std::vector<std::int64_t> clock_offsets{};
    server_values values{};
};

/// Stores what only the primary, or a user with more rights, can tell.
void query_primary(
    mongoc_client_t* client, const mongo_reply& hello, const mongo_parameters& parameters, replica_set& set)
{
    const auto name = hello.text("setName");
    set.values.set("set", name.empty() ? "none" : name);
    if (!name.empty())
        set.values.set("setName", name);
    set.hosts = hello.list("hosts");
    set.values.set("members", std::to_string(set.hosts.size()));
    set.values.set("arbiters", std::to_string(hello.list("arbiters").size()));

    const mongo_reply configuration(client, "admin", R"({"replSetGetConfig":1})");
    constexpr auto journal = "writeConcernMajorityJournalDefault";
    if (const auto value = configuration.text("config.writeConcernMajorityJournalDefault"); !value.empty())
        set.values.set(journal, value);
    else
        set.values.set_unknown(journal, configuration.error());

    const mongo_reply status(client, "admin", R"({"serverStatus":1})");
    if (const auto engine = status.text("storageEngine.name"); !engine.empty()) {
        set.values.set("storage_engine", engine);
        set.values.set("persistent", status.text("storageEngine.persistent"));
    } else {
        set.values.set_unknown("storage_engine", status.error());
    }

    const mongo_reply collections(client, parameters.database, R"({"listCollections":1,"nameOnly":true})");
    if (collections.error().empty())
        set.values.set("listCollections", "allowed");
    else
        set.values.set_unknown(
            "listCollections", "an unsuitable collection is then found by the first lock only: " + collections.error());
}

server_values query_member(const remote::endpoint& server, const mongo_parameters& parameters, replica_set& set)
{
    server_values values;
    const auto client = connect(server, parameters);
    if (!client) {
        values.set("answer", "no");
        values.set("cause", "the driver refuses the options of the URL");
        return values;
    }
    const mongo_reply hello(client.get(), "admin", R"({"hello":1})");
    values.set("answer", hello.error().empty() ? "yes" : "no");
    values.set("cause", hello.error());
    if (!hello.error().empty())
        return values;
    values.set("state", state_of(hello));
    const mongo_reply build(client.get(), "admin", R"({"buildInfo":1})");
    if (build.error().empty())
        values.set("version", build.text("version"));
    else
        values.set_unknown("version", build.error());
    measure_clock(client.get(), values);
    if (const auto offset = values.number("clock_offset"))
        set.clock_offsets.push_back(*offset);
    if (set.hosts.empty())
        set.hosts = hello.list("hosts");
    if (values.text("state") == "primary")
        query_primary(client.get(), hello, parameters, set);
    return values;
}

remote::endpoint parse_member(const std::string& text)
{
    const std::string url = "mongodb://" + text;
    const remote::url from(url, "mongodb", "mongodb://host:port");
    return from.hosts("27017").front();
}

} // namespace

std::vector<finding> examine_mongo(const backend_address& address, const lock_probe& probe)
{
    mongoc_init();
    // The driver would write its warnings to stderr.
    mongoc_log_set_handler(nullptr, nullptr);
    const remote::url from(address.url, "mongodb", "mongodb://host:port");
    const auto parameters = read_parameters(from, address);
    std::vector<finding> lines;
    replica_set set;
    std::vector<remote::endpoint> members = from.hosts("27017");
    for (std::size_t i = 0; i < members.size(); ++i) {
        append(lines,
            examine(remote::to_text(members[i]), mongo_member_checks(), query_member(members[i], parameters, set)));
        for (const auto& each : set.hosts) {
            if (auto member = parse_member(each); std::ranges::find(members, member) == members.end())
                members.push_back(std::move(member));
        }
    }
    if (probe.values.has("waiting"))
        set.values.set("waiting", probe.values.text("waiting"));
    if (set.clock_offsets.size() > 1) {
        const auto [least, most] = std::ranges::minmax(set.clock_offsets);
        set.values.set("clock_spread", std::to_string(most - least));
    }
    append(lines, examine("mongodb", mongo_checks(), set.values, probe.warnings));
    return lines;
}

} // namespace command
