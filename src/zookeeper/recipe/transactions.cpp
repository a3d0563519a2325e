// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/transactions.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// The driver's code for the members of a failed transaction that follow the failed member (ZRUNTIMEINCONSISTENCY).
constexpr int runtime_inconsistency = -2;

/// The transaction that is being filled.
class open_batch
{
public:
    explicit open_batch(const batch_limits& limits) noexcept : limits_(limits) {}

    [[nodiscard]] bool takes(const batch_item& each) const
    {
        return members_.size() < limits_.max_items && operations_ + each.operations <= limits_.max_operations &&
               bytes_ + each.bytes <= limits_.max_bytes &&
               !(each.creates && std::ranges::find(parents_, each.parent) != parents_.end());
    }
    void add(std::size_t index, const batch_item& each)
    {
        members_.push_back(index);
        operations_ += each.operations;
        bytes_ += each.bytes;
        // There are at most max_items entries, so that a linear search is fast.
        if (each.creates)
            parents_.push_back(each.parent);
    }
    [[nodiscard]] std::vector<std::size_t> take()
    {
        operations_ = 0;
        bytes_ = 0;
        parents_.clear();
        return std::exchange(members_, {});
    }

private:
    batch_limits limits_;
    std::vector<std::size_t> members_;
    std::vector<std::string_view> parents_;
    std::size_t operations_ = 0;
    std::size_t bytes_ = 0;
};

} // namespace

std::vector<std::vector<std::size_t>> make_batches(std::span<const batch_item> items, batch_limits limits)
{
    std::vector<std::vector<std::size_t>> batches;
    open_batch open(limits);
    const auto close = [&] {
        if (auto members = open.take(); !members.empty())
            batches.push_back(std::move(members));
    };
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto& each = items[i];
        if (each.is_alone || !open.takes(each))
            close();
        open.add(i, each);
        if (each.is_alone)
            close();
    }
    close();
    return batches;
}

multi_outcome outcome_of(int code, std::span<const int> codes)
{
    if (code == 0)
        return {.done = true};
    const auto at = std::ranges::find_if(codes, [](int each) { return each != 0 && each != runtime_inconsistency; });
    // If the whole call has failed, for example with its connection, all members have its code, and none is the
    // failed_member.
    if (at == codes.end() || std::ranges::count(codes, *at) > 1)
        return {.done = false};
    return {.done = false, .failed_member = static_cast<std::size_t>(at - codes.begin())};
}

} // namespace colock::inline v0::zookeeper::detail
