// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace colock::zookeeper::detail {

/// What the driver watches. It asks for all of that again in one packet when a connection is another one, and a packet
/// that is too large cuts that.
///
/// Thread safety: none.
class watched_nodes
{
public:
    enum class kind : unsigned char
    {
        data,
        children,
    };
    using entry = std::pair<std::string, kind>;

    void add(std::string_view path, kind what)
    {
        if (all_.emplace(path, what).second)
            size_ += path.size();
    }
    /// It has changed, and is watched no longer.
    void changed(std::string_view path)
    {
        for (const auto what : {kind::data, kind::children}) {
            if (all_.erase({std::string(path), what}) > 0)
                size_ -= path.size();
        }
    }
    /// Half of what a server takes unless it was told otherwise.
    [[nodiscard]] bool too_many() const noexcept { return size_ > std::size_t{512} * 1024; }
    [[nodiscard]] std::set<entry> take_all() noexcept
    {
        size_ = 0;
        return std::exchange(all_, {});
    }

private:
    std::set<entry> all_;
    std::size_t size_ = 0;
};

} // namespace colock::zookeeper::detail
