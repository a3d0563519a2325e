// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection_pool.hpp"
#include "mongo/driver/command.hpp"
#include "support/run.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::mongo::detail {

inline std::ostream& operator<<(std::ostream& to, answer::kind what)
{
    return to << static_cast<int>(what);
}

} // namespace colock::inline v0::mongo::detail

namespace colock::testing {

using namespace mongo::detail;
using namespace std::chrono_literals;
using kind = answer::kind;

/// Maximum time to wait. Only a failing test waits for so long.
inline constexpr auto patience = 20s;

class recorded_command final : public command
{
public:
    recorded_command(std::string database, std::string_view asked, std::function<void()> then)
        : command(std::move(database), document::from_json(asked)), then_(std::move(then))
    {
    }

    [[nodiscard]] bool done() const noexcept { return done_; }

private:
    void on_end() override
    {
        done_ = true;
        if (then_)
            then_();
    }

    const std::function<void()> then_;
    bool done_ = false;
};
using recorded_command_ptr = std::shared_ptr<recorded_command>;

/// Objects that must not outlive the context.
struct pool_state final : context_member
{
    void context_shutdown() noexcept override
    {
        all.reset();
        strand = {};
    }

    asio::any_io_executor strand;
    std::shared_ptr<connection_pool> all;
};

/// A connection pool to one server, on a context of its own.
struct pool_fixture
{
    explicit pool_fixture(std::uint16_t port, std::size_t max_connections = 8)
        : pool_fixture(destination{.host = "127.0.0.1", .port = std::to_string(port)}, max_connections)
    {
    }
    explicit pool_fixture(destination to, std::size_t max_connections = 8)
    {
        state->strand = asio::make_strand(*io);
        state->all = std::make_shared<connection_pool>(state->strand, std::move(to), max_connections);
        join_context(io->get_executor(), state);
    }
    ~pool_fixture()
    {
        if (!state->all)
            return;
        state->all->close_all();
        io->run_for(patience);
    }

    recorded_command_ptr ask(
        std::string_view asked, lease_clock::duration within = patience, std::function<void()> then = {})
    {
        return ask_in("colock_test", asked, within, std::move(then));
    }
    recorded_command_ptr ask_in(std::string database, std::string_view asked, lease_clock::duration within = patience,
        std::function<void()> then = {})
    {
        auto made = std::make_shared<recorded_command>(std::move(database), asked, std::move(then));
        post([made, deadline = lease_clock::now() + within](connection_pool& all) { all.ask(made, deadline); });
        return made;
    }
    void post(std::function<void(connection_pool&)> act)
    {
        asio::post(state->strand, [env = state, act = std::move(act)] { act(*env->all); });
    }
    [[nodiscard]] const connection_pool& all() const { return *state->all; }
    const answer& wait_for(const recorded_command_ptr& asked) const
    {
        run_until(*io, [&] { return asked->done(); });
        return asked->result();
    }
    const answer& ask_and_wait(std::string_view asked, lease_clock::duration within = patience)
    {
        last_command = ask(asked, within);
        return wait_for(last_command);
    }

    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    std::shared_ptr<pool_state> state = std::make_shared<pool_state>();
    recorded_command_ptr last_command;
};

inline constexpr auto ping = R"({"ping": 1})";
inline constexpr auto count_up = R"({"findAndModify": "pool_test", "query": {"_id": "n"}, "update": {"$inc": {"n": 1}},
    "upsert": true, "new": true})";

} // namespace colock::testing
