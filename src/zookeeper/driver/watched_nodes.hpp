// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// The nodes that the driver watches. On another connection the driver sets all of its watches again in one packet, and
/// the server closes the connection if the packet is too large.
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

    void add(std::string_view path, kind type)
    {
        if (all_.emplace(path, type).second)
            size_ += path.size();
    }
    /// Notes that a node has changed, and is not watched any more.
    void changed(std::string_view path)
    {
        for (const auto type : {kind::data, kind::children}) {
            if (all_.erase({std::string(path), type}) > 0)
                size_ -= path.size();
        }
    }
    /// The limit is half of the packet size that a server accepts by default.
    [[nodiscard]] bool is_too_large() const noexcept { return size_ > std::size_t{512} * 1024; }
    [[nodiscard]] std::set<entry> take_all() noexcept
    {
        size_ = 0;
        return std::exchange(all_, {});
    }

private:
    std::set<entry> all_;
    std::size_t size_ = 0;
};

} // namespace colock::inline v0::zookeeper::detail
