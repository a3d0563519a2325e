// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace command {

enum class verdict : unsigned char
{
    ok,
    warn,
    fail,
};

/// One line of the report.
struct finding
{
    verdict result = verdict::ok;
    /// Address of the server.
    std::string server{};
    std::string check{};
    /// The value that was found; may be empty.
    std::string value{};
    /// Meaning of the value, and remedy; empty if `result` is ok.
    std::string remedy{};

    friend bool operator==(const finding&, const finding&) = default;
};

/// Values of one server by their names, and the reasons why other values are not known.
class server_values
{
public:
    void set(std::string_view name, std::string value)
    {
        values_.insert_or_assign(std::string(name), std::move(value));
    }
    /// Stores why a value is not known.
    void set_unknown(std::string_view name, std::string reason)
    {
        reasons_.insert_or_assign(std::string(name), std::move(reason));
    }

    [[nodiscard]] bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
    /// Returns the value; empty if it is not known.
    [[nodiscard]] std::string text(std::string_view name) const;
    /// Returns the number with which the value begins, or nothing if there is none.
    [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;
    /// Returns why the value is not known; empty if the server does not state it.
    [[nodiscard]] std::string reason(std::string_view name) const;

private:
    std::map<std::string, std::string, std::less<>> values_;
    std::map<std::string, std::string, std::less<>> reasons_;
};

struct judgement
{
    verdict result = verdict::ok;
    std::string remedy{};
};

/// One row of the table of a backend.
struct check
{
    std::string_view name;
    /// Name of the value; empty if only the adapter's warnings decide.
    std::string_view value_name{};
    /// Text behind the value, such as its unit.
    std::string_view unit{};
    /// The command with which an operator reads the value; empty: a value that is not known gives no line.
    std::string_view command{};
    /// Part of the adapter's warning that this row reports.
    std::string_view warning{};
    /// The result if there is such a warning.
    verdict if_warned = verdict::warn;
    /// Judges the value if there is no such warning. Null: the value is ok.
    judgement (*judge)(const server_values& values) = nullptr;
    /// Returns whether the row is used. Null: always.
    bool (*applies)(const server_values& values) = nullptr;
};

/// Warnings of the adapter of one server.
struct adapter_warnings
{
    /// Whether the adapter was connected, so that a missing warning means that there is nothing to warn of.
    bool are_complete = true;
    std::vector<std::string> texts{};
};

/// Makes one line for each row that applies, and for each warning that no row reports. If the value `answer` is "no",
/// only the row of this value applies.
[[nodiscard]] std::vector<finding> examine(std::string_view server, std::span<const check> rows,
    const server_values& values, const adapter_warnings& warnings = {});

/// The version of a server; `text` begins with it.
struct version
{
    int major = 0;
    int minor = 0;

    [[nodiscard]] static version parse(std::string_view text);
    friend auto operator<=>(const version&, const version&) = default;
};

// The tables of the backends.

[[nodiscard]] std::span<const check> lock_checks();
[[nodiscard]] std::span<const check> redis_checks();
[[nodiscard]] std::span<const check> redis_replica_checks();
[[nodiscard]] std::span<const check> sentinel_checks();
[[nodiscard]] std::span<const check> cluster_checks();
/// Checks of a node of a cluster that does not answer.
[[nodiscard]] std::span<const check> unreachable_node_checks();
[[nodiscard]] std::span<const check> zookeeper_checks();
/// Checks that compare all servers of an ensemble.
[[nodiscard]] std::span<const check> ensemble_checks();
/// Checks of a replica set, or of a server without one.
[[nodiscard]] std::span<const check> mongo_checks();
/// Checks of each member.
[[nodiscard]] std::span<const check> mongo_member_checks();

} // namespace command
