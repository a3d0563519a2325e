// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/driver.hpp"
#include "support/print.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(threads_memory_store)

namespace {

constexpr int thread_count = 4;
constexpr int rounds = 20000;

/// Uses the adapter without a locker from many threads. Claims queue, give up, and are destroyed in the queue or with a
/// grant that they have not fetched. Other threads list, purge and sweep.
class stress_test
{
public:
    void run()
    {
        std::vector<std::thread> threads;
        for (int i = 0; i < thread_count; ++i)
            threads.emplace_back([this, i] { work(static_cast<unsigned>(i)); });
        for (auto& thread : threads)
            thread.join();
    }

    void check() const
    {
        for (std::size_t key = 0; key < key_count; ++key)
            BOOST_TEST(guarded_[key] == entered_[key].load());
        BOOST_TEST(granted_ > 0);
        // On a busy machine the threads may hardly meet.
        BOOST_WARN(handed_over_ > 0);
        BOOST_TEST(testing::stored_in(*backend_).empty());
    }

private:
    static constexpr std::size_t key_count = 3;

    void work(unsigned seed)
    {
        std::mt19937 random(seed);
        for (int round = 0; round < rounds; ++round) {
            const auto key = random() % key_count;
            const auto name = "key:" + std::to_string(key);
            if (random() % 4 == 0)
                share(name);
            else
                exclude(name, key, random() % 4);
            if (random() % 64 == 0)
                administer(random() % 2 == 0);
        }
    }

    create_status create(const claim_ptr& claim)
    {
        auto status = create_status::failed;
        claim->set_operation_start(lease_clock::now());
        backend_->start_create(claim, [&](create_outcome outcome) { status = outcome.status; });
        return status;
    }

    void release(const claim_ptr& claim)
    {
        claim->set_operation_start(lease_clock::now());
        backend_->start_release(claim, release_guarantee::released, [](release_outcome) {});
    }

    void exclude(const std::string& name, std::size_t key, unsigned long choice)
    {
        const claim_ptr claim = driver::exclusive(name);
        if (create(claim) != create_status::granted) {
            switch (choice) {
            case 0:
                // The claim is destroyed in the queue, or with a grant that arrived meanwhile.
                return;
            case 1:
                backend_->start_wait(claim, lease_clock::time_point::max(), [](wait_outcome) {});
                backend_->cancel_wait(*claim);
                return backend_->start_release(claim, release_guarantee::settled, [](release_outcome) {});
            default:
                await_grant(claim);
            }
        }
        ++guarded_[key];
        ++entered_[key];
        ++granted_;
        release(claim);
    }

    void await_grant(const claim_ptr& claim)
    {
        do {
            const auto is_woken = std::make_shared<std::atomic<bool>>(false);
            backend_->start_wait(claim, lease_clock::time_point::max(), [is_woken](wait_outcome) {
                is_woken->store(true);
                is_woken->notify_one();
            });
            is_woken->wait(false);
            ++handed_over_;
        } while (create(claim) != create_status::granted);
    }

    void share(const std::string& name)
    {
        const claim_ptr claim = driver::shared(name, 2);
        if (create(claim) != create_status::granted)
            await_grant(claim);
        release(claim);
    }

    void administer(bool purge)
    {
        if (purge)
            backend_->start_listing({.action = listing_action::purge}, [](list_outcome) {});
        else
            backend_->start_listing({}, [](list_outcome) {});
        const claim_ptr broken = driver::exclusive("broken");
        create(broken);
        backend_->start_listing(
            {.action = listing_action::break_key, .filter = {.key = "broken"}}, [](list_outcome) {});
        const claim_ptr stale = driver::exclusive("stale", 1ms);
        create(stale);
        backend_->start_release(broken, release_guarantee::settled, [](release_outcome) {});
        backend_->start_release(stale, release_guarantee::settled, [](release_outcome) {});
    }

    asio::io_context io_;
    const std::shared_ptr<adapter> backend_ =
        memory::make_adapter(io_.get_executor(), {.sweep_interval = 1ms, .sweep_batch = 2});
    /// Plain integers, so that a second holder causes a data race as well as a wrong sum.
    std::array<long, key_count> guarded_{};
    std::array<std::atomic<long>, key_count> entered_{};
    std::atomic<int> granted_{0};
    std::atomic<int> handed_over_{0};
};

} // namespace

BOOST_AUTO_TEST_CASE(store_excludes_and_cleans_up_from_any_thread)
{
    stress_test stress;
    stress.run();
    stress.check();
}

BOOST_AUTO_TEST_SUITE_END()
