// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/cluster/cluster.hpp"

#include <colock/spi/outcome.hpp>

#include <memory>

namespace colock::inline v0::redis::detail {

/// Lists the locks of all masters, or purges them: one page or step.
///
/// The masters are examined one after another. The cursor of the next page contains the slots that were listed
/// completely. A lock whose slot moves meanwhile may be listed twice.
/// \param request a list or a purge without a key
void start_cluster_listing(
    std::shared_ptr<cluster> masters, client& seed, const listing_request& request, completion<list_outcome> done);

/// Tells whether the text is empty or the cursor of such a page.
[[nodiscard]] bool is_cluster_cursor(std::string_view text);

} // namespace colock::inline v0::redis::detail
