// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/batchable_operation.hpp"

#include <boost/assert.hpp>

#include <utility>

namespace colock::inline v0::mongo::detail {

void batchable_operation::start()
{
    if (is_batchable())
        owner_->add_to_batch(*this);
    else
        begin();
}

void batchable_operation::fail(delivery request_state, failure_ptr failure)
{
    if (const auto own_batch = std::exchange(batch_, {}).lock(); own_batch && own_batch->leave(*this))
        get_primary().give_up(*own_batch);
    command_operation::fail(request_state, std::move(failure));
}

void batchable_operation::write_for(std::span<batchable_operation* const> all, bson_t& to)
{
    BOOST_ASSERT_MSG(all.size() == 1, "only operations that name a kind share a statement");
    all.front()->write(to);
}

void batchable_operation::on_error(const answer& result)
{
    answered(result, {});
}

} // namespace colock::inline v0::mongo::detail
