// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/operations/command_operation.hpp"

#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

const command_template& request()
{
    static const command_template text(R"({"createIndexes":"?c","indexes":[
        {"key":{"o.group":1},"name":"colock_group","sparse":true},
        {"key":{"h.o.group":1},"name":"colock_shared_group","sparse":true},
        {"key":{"p":1},"name":"colock_free_since"}]})");
    return text;
}

class indexes_operation final : public command_operation
{
public:
    indexes_operation(operation_client& owner, completion<failure_ptr> done)
        : command_operation(owner), done_(std::move(done))
    {
    }

private:
    void begin() override { ask(request().filled({{"c", collection()}}), &indexes_operation::on_created); }
    void on_created(const answer&)
    {
        end();
        done_(nullptr);
    }
    void failed(delivery, failure_ptr failure) override { done_(std::move(failure)); }

    completion<failure_ptr> done_;
};

} // namespace

operation_ptr make_indexes(operation_client& owner, completion<failure_ptr> done)
{
    return operation_ptr(new indexes_operation(owner, std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
