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

namespace colock::mongo::detail {

inline std::ostream& operator<<(std::ostream& to, answer::kind what)
{
    return to << static_cast<int>(what);
}

} // namespace colock::mongo::detail

namespace colock::testing {

using namespace mongo::detail;
using namespace std::chrono_literals;
using kind = answer::kind;

/// Only a test that is about to fail waits as long.
inline constexpr auto patience = 20s;

class noted final : public command
{
public:
    noted(std::string database, std::string_view asked, std::function<void()> then)
        : command(std::move(database), document::from_json(asked)), then_(std::move(then))
    {
    }

    [[nodiscard]] bool done() const noexcept { return done_; }

private:
    void performed() override
    {
        done_ = true;
        if (then_)
            then_();
    }

    const std::function<void()> then_;
    bool done_ = false;
};
using noted_ptr = std::shared_ptr<noted>;

/// What must not outlive the context.
struct members final : context_member
{
    void context_shutdown() noexcept override
    {
        all.reset();
        strand = {};
    }

    asio::any_io_executor strand;
    std::shared_ptr<lanes> all;
};

/// Lanes to a server, on a context of their own.
struct scene
{
    explicit scene(std::uint16_t port, std::size_t most = 8)
        : scene(destination{.host = "127.0.0.1", .port = std::to_string(port)}, most)
    {
    }
    explicit scene(destination to, std::size_t most = 8)
    {
        of_context->strand = asio::make_strand(*io);
        of_context->all = std::make_shared<lanes>(of_context->strand, std::move(to), most);
        join_context(io->get_executor(), of_context);
    }
    ~scene()
    {
        if (!of_context->all)
            return;
        of_context->all->close_all();
        io->run_for(patience);
    }

    noted_ptr ask(std::string_view asked, lease_clock::duration within = patience, std::function<void()> then = {})
    {
        return ask_in("colock_test", asked, within, std::move(then));
    }
    noted_ptr ask_in(std::string database, std::string_view asked, lease_clock::duration within = patience,
        std::function<void()> then = {})
    {
        auto made = std::make_shared<noted>(std::move(database), asked, std::move(then));
        post([made, deadline = lease_clock::now() + within](lanes& all) { all.ask(made, deadline); });
        return made;
    }
    void post(std::function<void(lanes&)> act)
    {
        asio::post(of_context->strand, [on = of_context, act = std::move(act)] { act(*on->all); });
    }
    [[nodiscard]] const lanes& all() const { return *of_context->all; }
    const answer& wait_for(const noted_ptr& asked) const
    {
        run_until(*io, [&] { return asked->done(); });
        return asked->got();
    }
    const answer& say(std::string_view asked, lease_clock::duration within = patience)
    {
        last = ask(asked, within);
        return wait_for(last);
    }

    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    std::shared_ptr<members> of_context = std::make_shared<members>();
    noted_ptr last;
};

inline constexpr auto ping = R"({"ping": 1})";
inline constexpr auto count_up = R"({"findAndModify": "lanes", "query": {"_id": "n"}, "update": {"$inc": {"n": 1}},
    "upsert": true, "new": true})";

} // namespace colock::testing
