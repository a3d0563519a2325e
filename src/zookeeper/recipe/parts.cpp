// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/parts.hpp"

#include <algorithm>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

/// Of those behind the culprit.
constexpr int runtime_inconsistency = -2;

/// One that takes more.
class open_part
{
public:
    explicit open_part(const part_limits& limits) noexcept : limits_(limits) {}

    [[nodiscard]] bool takes(const batch_item& each) const
    {
        return members_.size() < limits_.parcels && operations_ + each.operations <= limits_.operations &&
               bytes_ + each.bytes <= limits_.bytes &&
               !(each.creates && std::ranges::find(parents_, each.parent) != parents_.end());
    }
    void add(std::size_t index, const batch_item& each)
    {
        members_.push_back(index);
        operations_ += each.operations;
        bytes_ += each.bytes;
        // At most as many as a part has parcels.
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
    part_limits limits_;
    std::vector<std::size_t> members_;
    std::vector<std::string_view> parents_;
    std::size_t operations_ = 0;
    std::size_t bytes_ = 0;
};

} // namespace

std::vector<std::vector<std::size_t>> in_parts(std::span<const batch_item> ready, part_limits limits)
{
    std::vector<std::vector<std::size_t>> parts;
    open_part open(limits);
    const auto close = [&] {
        if (auto members = open.take(); !members.empty())
            parts.push_back(std::move(members));
    };
    for (std::size_t i = 0; i < ready.size(); ++i) {
        const auto& each = ready[i];
        if (each.by_itself || !open.takes(each))
            close();
        open.add(i, each);
        if (each.by_itself)
            close();
    }
    close();
    return parts;
}

multi_outcome outcome_of(int code, std::span<const int> codes)
{
    if (code == 0)
        return {.done = true};
    const auto at = std::ranges::find_if(codes, [](int each) { return each != 0 && each != runtime_inconsistency; });
    // Where the whole call failed, as with its connection, all members have its code, and none is to blame.
    if (at == codes.end() || std::ranges::count(codes, *at) > 1)
        return {.done = false};
    return {.done = false, .culprit = static_cast<std::size_t>(at - codes.begin())};
}

} // namespace colock::zookeeper::detail
