// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/batch.hpp"
#include "mongo/commands/connection_pool.hpp"
#include "mongo/commands/question.hpp"
#include "mongo/driver/command_template.hpp"
#include "mongo/settings.hpp"
#include "mongo/topology/server_clock.hpp"

#include <colock/spi/adapter.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace colock::mongo::detail {

/// Whether a server carries our updates out as we mean them, and lets us: grants a lock, refuses it to a second one,
/// and so on, on a document that no key leads to. There are servers that speak the protocol and misread a pipeline
/// without a word: with those two would hold a lock.
///
/// Thread safety: none; belongs to the strand. Its questions keep it alive.
class server_check : public std::enable_shared_from_this<server_check>
{
public:
    /// Why it cannot be used, or not now; null: it can. Not called once it was stopped.
    using handler = std::function<void(const failure_ptr& why)>;

    server_check(const settings& config, std::shared_ptr<connection_pool> on, const server_clock& clock, handler ended);

    /// Once, one of the two: checks all of it; or, of a server whose kind was checked, learns the code alone.
    void start() { look_at_collection(); }
    void learn_code();
    void stop() noexcept;

    /// With which the server refuses what may change nothing, once it was found usable.
    [[nodiscard]] std::int32_t no_change_code() const noexcept { return no_change_code_; }

private:
    struct step;
    static const std::array<step, 15> steps;

    // Many users may list neither collections nor indexes. Then an unsuitable collection shows by what it refuses.
    void look_at_collection();
    void look_at_indexes();
    /// Returns why the collection is unsuitable, or an empty text.
    using finder = std::string (*)(const document& reply);
    void look(const command_template& command, finder find_reason, void (server_check::*then)());
    void try_joined();
    /// From the first of those statements, which may change nothing. False: there is none, and it has ended.
    [[nodiscard]] bool take_code(const statement_errors& errors);
    void ask(const command_template& which, const std::string& who, std::int64_t number, question::handler then);
    /// It was done; else it has ended.
    [[nodiscard]] bool is_done(const answer& got);
    void misread(const std::string& what);
    void take_step(std::size_t which);
    void answered(std::size_t which, const answer& got);
    void end(const failure_ptr& why);

    const settings& config_;
    const std::shared_ptr<connection_pool> lanes_;
    const server_clock& clock_;
    handler ended_;
    /// It keeps us, as long as its lane does.
    std::weak_ptr<question> under_way_;
    document id_;
    const document owner_;
    const std::string first_;
    const std::string second_;
    std::int32_t no_change_code_ = changes_nothing;
};

} // namespace colock::mongo::detail
