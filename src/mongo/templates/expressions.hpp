// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

// The texts of the commands, from which command_templates are made. They are extended JSON.
namespace colock::inline v0::mongo::detail::templates {

using std::string;

// Expressions and stages of an update pipeline. They know nothing of locks.

/// Time of the server, in milliseconds.
inline const string now = R"({"$toLong":"$$NOW"})";
/// The number 0, with 64 bits.
inline const string none = R"({"$numberLong":"0"})";
/// The document as it is. DocumentDB would add another `_id` to "$$ROOT" each time, but keeps two in a merged document.
inline const string root = R"({"$mergeObjects":["$$ROOT",{}]})";

using fields = std::vector<std::pair<const char*, string>>;

[[nodiscard]] string list(std::initializer_list<string> each);
[[nodiscard]] string object(const fields& each);

[[nodiscard]] string cond(const string& test, const string& then, const string& otherwise);
/// Applies the operator `name`, which includes its '$'.
[[nodiscard]] string binary(const char* name, const string& left, const string& right);
[[nodiscard]] string all_of(std::initializer_list<string> each);
[[nodiscard]] string above(const string& left, const string& right);
[[nodiscard]] string below(const string& left, const string& right);
[[nodiscard]] string equal(const string& left, const string& right);
[[nodiscard]] string either(const string& left, const string& right);
[[nodiscard]] string differs(const string& left, const string& right);
[[nodiscard]] string sum(const string& left, const string& right);
/// Maximum of numbers. A missing field is less than any number.
[[nodiscard]] string greatest_of(std::initializer_list<string> each);
[[nodiscard]] string if_null(const string& field, const string& otherwise);
[[nodiscard]] string date(const string& from);
[[nodiscard]] string size_of(const string& array);
/// Elements for which `test` holds; each is `$$i` in `test`.
[[nodiscard]] string filtered(const string& array, const string& test);
/// The whole document with some fields replaced.
[[nodiscard]] string root_with(const string& changes);

/// Stage that sets fields.
[[nodiscard]] string set(const fields& each);
/// Stage that replaces the document.
[[nodiscard]] string replace_with(const string& replacement);

} // namespace colock::inline v0::mongo::detail::templates
