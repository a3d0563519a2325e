// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/templates/statements.hpp"

#include "mongo/templates/write_concern.hpp"

namespace colock::inline v0::mongo::detail::templates {

string find_and_modify(const string& query, std::initializer_list<string> stages, returned_document reply_document,
    bool upsert, const string& shown)
{
    return R"({"findAndModify":"?c","query":)" + query + R"(,"update":)" + list(stages) + R"(,"upsert":)" +
           (upsert ? "true" : "false") + R"(,"new":)" +
           (reply_document == returned_document::after ? "true" : "false") +
           (shown.empty() ? "" : R"(,"fields":)" + shown) + "," + write_concern + "}";
}

string statement(const string& stage)
{
    return R"({"q":)" + by_key + R"(,"u":[)" + stage + R"(],"upsert":true})";
}
string conditional_statement(const string& condition, const string& changes)
{
    return statement(replace_with(cond(condition, root_with(changes), forced_error)));
}

} // namespace colock::inline v0::mongo::detail::templates
