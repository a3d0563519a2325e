// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/commands/batch_update.hpp"

#include "mongo/driver/command_template.hpp"
#include "mongo/settings.hpp"
#include "mongo/templates/write_concern.hpp"

#include <utility>

namespace colock::inline v0::mongo::detail {

batch_update::batch_update(const settings& config) : config_(config)
{
    bson_append_utf8(
        command_.get(), "update", -1, config.collection.data(), static_cast<int>(config.collection.size()));
    bson_append_array_begin(command_.get(), "updates", -1, &statements_);
}

document batch_update::take()
{
    static const command_template concern(R"({"ordered":false,)" + templates::write_concern + "}");
    bson_append_array_end(command_.get(), &statements_);
    concern.append_to(*command_.get(), {{"m", config_.operation_timeout.count()}});
    return std::move(command_);
}

} // namespace colock::inline v0::mongo::detail
