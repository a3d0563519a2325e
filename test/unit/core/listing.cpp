// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/spi/awaitable_adapter.hpp>

#include <algorithm>
#include <functional>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

using wall_clock = std::chrono::system_clock;

lock_status status(std::string key, std::optional<wall_clock::time_point> created = {})
{
    lock_status made;
    made.key = std::move(key);
    made.created = created;
    return made;
}

/// An adapter that returns prepared pages. The cursor is the number of a page.
class scripted_pages_adapter final : public awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;

    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "listing_fixture", .capabilities = {.list = true}};
    }

    std::vector<list_outcome> pages{};
    /// The limit of each step of a purge.
    std::vector<std::size_t> limits{};

protected:
    asio::awaitable<create_outcome> do_create(claim_ptr) override { co_return create_outcome::granted(7); }
    asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee) override { co_return release_outcome{}; }
    asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
    {
        co_return extend_outcome{};
    }
    asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{true, nullptr}; }
    asio::awaitable<list_outcome> do_listing(listing_request request) override
    {
        const auto number = request.cursor.empty() ? 0 : std::stoul(request.cursor);
        auto page = pages.at(number);
        if (request.action == listing_action::purge) {
            limits.push_back(request.limit);
            page.locks.resize(std::min(request.limit, page.locks.size()));
        }
        if (number + 1 < pages.size())
            page.next = std::to_string(number + 1);
        co_return page;
    }
};

struct listing_fixture
{
    asio::io_context io;
    std::shared_ptr<scripted_pages_adapter> backend = std::make_shared<scripted_pages_adapter>(io.get_executor());
    locker by{backend};

    template <class T>
    T run(asio::awaitable<T> coroutine)
    {
        return run_coro(io, std::move(coroutine));
    }
};

std::vector<std::string> keys_of(const std::vector<lock_status>& statuses)
{
    std::vector<std::string> keys;
    for (const auto& each : statuses)
        keys.push_back(each.key);
    return keys;
}

using keys = std::vector<std::string>;

} // namespace

BOOST_FIXTURE_TEST_SUITE(listing, listing_fixture)

BOOST_AUTO_TEST_CASE(newest_locks_are_first_and_locks_of_unknown_age_last)
{
    const auto when = wall_clock::time_point(1000h);
    backend->pages = {{.locks = {status("none"), status("old", when), status("new", when + 2h)}},
        {.locks = {status("nor"), status("middle", when + 1h), status("newest", when + 3h)}}};
    const auto sorted = keys_of(run(by.list({}, list_order::newest_first)));
    BOOST_TEST((keys(sorted.begin(), sorted.begin() + 4) == keys{"newest", "new", "middle", "old"}));
    BOOST_TEST((keys_of(run(by.list())) == keys{"none", "old", "new", "nor", "middle", "newest"}));
}

BOOST_AUTO_TEST_CASE(list_has_a_moving_key_once_and_every_holder_of_a_key)
{
    backend->pages = {{.locks = {status("a"), status("r"), status("r")}}, {.locks = {}},
        {.locks = {status("b"), status("a"), status("r"), status("c"), status("c")}}};
    BOOST_TEST((keys_of(run(by.list())) == keys{"a", "r", "r", "b", "c", "c"}));
}

/// Sorting all entries at once would block other handlers for a long time.
BOOST_AUTO_TEST_CASE(other_handlers_run_while_a_long_list_is_sorted)
{
    constexpr int many = 8000;
    const auto turns_for = [&](int count) {
        backend->pages.assign(1, {});
        for (int i = 0; i < count; ++i)
            backend->pages.front().locks.push_back(status(std::to_string(i), wall_clock::time_point(i % 7 * 1h)));
        std::vector<lock_status> listed;
        by.async_list({}, list_order::newest_first, [&](error_code failed, std::vector<lock_status> all) {
            BOOST_TEST(!failed);
            listed = std::move(all);
        });
        io.restart();
        int turns = 0;
        for (; listed.empty() && io.run_one() > 0; ++turns)
            continue;
        BOOST_TEST(std::ssize(listed) == count);
        BOOST_TEST(std::ranges::is_sorted(listed, std::ranges::greater(), &lock_status::created));
        return turns;
    };
    BOOST_TEST(turns_for(many) >= turns_for(1) + many / 1000 - 1);
}

BOOST_AUTO_TEST_CASE(locks_that_do_not_match_are_not_listed)
{
    backend->pages = {{.locks = {status("a:1"), status("b:1")}}, {.locks = {status("a:2"), status("a")}}};
    BOOST_TEST((keys_of(run(by.list({.key_prefix = "a:"}))) == keys{"a:1", "a:2"}));
    BOOST_TEST(run(by.is_locked("a:1")));
    BOOST_TEST(!run(by.is_locked("a:2")));
}

BOOST_AUTO_TEST_CASE(cursor_names_its_backend)
{
    backend->pages = {{.locks = {status("a")}}, {.locks = {status("b")}}};
    BOOST_TEST(run(by.list_page()).next == "listing_fixture:1");
    BOOST_TEST((keys_of(run(by.list_page({}, "listing_fixture:1")).locks) == keys{"b"}));
    const auto check_refused = [&](filter which, const std::string& cursor) {
        BOOST_CHECK_EXCEPTION(run(by.list_page(std::move(which), cursor)), validation_error,
            [](const validation_error& why) { return why.code() == errc::invalid_options; });
    };
    for (const auto& cursor : {std::string("1"), std::string("listing_fixture"), std::string("listing_fixture:"),
             std::string("memory:1"), "listing_fixture:" + std::string(5000, '0')})
        check_refused({}, cursor);
    // All locks of one key are on one page.
    check_refused({.key = "a"}, "listing_fixture:1");
}

BOOST_AUTO_TEST_CASE(page_is_returned_unchanged)
{
    backend->pages = {{.locks = {status("a")}}, {.locks = {}}, {.locks = {status("a")}}};
    auto page = run(by.list_page());
    BOOST_TEST((keys_of(page.locks) == keys{"a"}));
    page = run(by.list_page({}, page.next));
    BOOST_TEST((page.locks.empty() && !page.next.empty()));
    page = run(by.list_page({}, page.next));
    BOOST_TEST((keys_of(page.locks) == keys{"a"}));
    BOOST_TEST(page.next.empty());
}

BOOST_AUTO_TEST_CASE(async_functions_return_the_same)
{
    const auto when = wall_clock::time_point(1000h);
    backend->pages = {{.locks = {status("old", when)}}, {.locks = {status("new", when + 1h)}}};
    lock_page page;
    std::vector<lock_status> sorted;
    by.async_list_page({}, {}, [&](error_code failed, lock_page listed) {
        BOOST_TEST(!failed);
        page = std::move(listed);
    });
    by.async_list({}, list_order::newest_first, [&](error_code failed, std::vector<lock_status> listed) {
        BOOST_TEST(!failed);
        sorted = std::move(listed);
    });
    io.restart();
    io.run();
    BOOST_TEST((keys_of(page.locks) == keys{"old"}));
    BOOST_TEST(page.next == "listing_fixture:1");
    BOOST_TEST((keys_of(sorted) == keys{"new", "old"}));
}

BOOST_AUTO_TEST_CASE(cursor_that_the_backend_refuses_is_invalid_input)
{
    backend->pages = {{.error = make_failure(errc::invalid_options, "no cursor of mine")}};
    const auto refused =
        required_error<validation_error>([&] { static_cast<void>(run(by.list_page({}, "listing_fixture:0"))); });
    BOOST_TEST((refused.code() == errc::invalid_options));
    BOOST_TEST(refused.detail() == "no cursor of mine");
    BOOST_TEST(refused.backend() == "listing_fixture");
}

BOOST_AUTO_TEST_CASE(a_purge_asks_for_no_more_than_is_left_of_its_limit)
{
    backend->pages = {
        {.locks = {3, status("a")}}, {.locks = {}}, {.locks = {4, status("b")}}, {.locks = {5, status("c")}}};
    BOOST_TEST(run(by.purge(8)).size() == 8U);
    BOOST_TEST((backend->limits == std::vector<std::size_t>{8, 5, 5, 1}));
    backend->limits.clear();
    BOOST_TEST(run(by.purge()).size() == 12U);
    BOOST_TEST((backend->limits == std::vector<std::size_t>(4, 1000)));
    backend->limits.clear();
    BOOST_TEST(run(by.purge(2)).size() == 2U);
    BOOST_TEST(backend->limits.size() == 1U);
}

BOOST_AUTO_TEST_CASE(removed_locks_are_reported_even_if_the_rest_fails)
{
    backend->pages = {{.locks = {2, status("a")}},
        {.locks = {status("b")}, .error = make_failure(errc::unavailable, "gone")}, {.locks = {status("c")}}};
    BOOST_TEST((keys_of(run(by.purge())) == keys{"a", "a", "b"}));
    backend->pages.erase(backend->pages.begin());
    BOOST_TEST((keys_of(run(by.purge())) == keys{"b"}));
    backend->pages.front().locks.clear();
    COLOCK_THROWS(error, errc::unavailable, run(by.purge()));
}

BOOST_AUTO_TEST_SUITE_END()
