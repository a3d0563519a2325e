// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

string list(std::initializer_list<string> each)
{
    string all;
    for (const auto& one : each)
        (all += all.empty() ? "" : ",") += one;
    return '[' + all + ']';
}
string object(const fields& each)
{
    string all;
    for (const auto& [name, value] : each)
        ((((all += all.empty() ? "\"" : ",\"") += name) += "\":") += value);
    return '{' + all + '}';
}

string cond(const string& test, const string& then, const string& otherwise)
{
    return R"({"$cond":[)" + test + ',' + then + ',' + otherwise + "]}";
}
string binary(const char* name, const string& left, const string& right)
{
    return string(R"({")") + name + R"(":[)" + left + ',' + right + "]}";
}
string all_of(std::initializer_list<string> each)
{
    return R"({"$and":)" + list(each) + '}';
}
string above(const string& left, const string& right)
{
    return binary("$gt", left, right);
}
string below(const string& left, const string& right)
{
    return binary("$lt", left, right);
}
string equal(const string& left, const string& right)
{
    return binary("$eq", left, right);
}
string either(const string& left, const string& right)
{
    return binary("$or", left, right);
}
string differs(const string& left, const string& right)
{
    return binary("$ne", left, right);
}
string sum(const string& left, const string& right)
{
    return binary("$add", left, right);
}
string greatest_of(std::initializer_list<string> each)
{
    return R"({"$max":)" + list(each) + '}';
}
string if_null(const string& field, const string& otherwise)
{
    return R"({"$ifNull":["$)" + field + "\"," + otherwise + "]}";
}
string date(const string& from)
{
    return R"({"$toDate":)" + from + '}';
}
string size_of(const string& array)
{
    return R"({"$size":)" + array + '}';
}
string filtered(const string& array, const string& test)
{
    return R"({"$filter":{"input":)" + array + R"(,"as":"i","cond":)" + test + "}}";
}
string root_with(const string& changes)
{
    return binary("$mergeObjects", R"("$$ROOT")", changes);
}

string set(const fields& each)
{
    return R"({"$set":)" + object(each) + '}';
}
string replace_with(const string& replacement)
{
    return R"({"$replaceWith":)" + replacement + '}';
}

} // namespace colock::inline v0::mongo::detail::templates
