// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/handle.hpp"
#include "zookeeper/reply.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// What may be asked of a session. It is sent while that is connected, or not at all. Its completion is called later,
/// on the strand; if it was cut off meanwhile, with `unanswered`.
///
/// Thread safety: none.
class requests
{
public:
    /// Where they go.
    class outlet
    {
    public:
        /// Null: none can be sent now. Else what is asked of it goes out with this turn.
        [[nodiscard]] virtual handle* take_request() = 0;
        /// It was not sent: to be told later.
        virtual void refuse(std::unique_ptr<request> unsent) = 0;

    protected:
        ~outlet() = default;
    };

    explicit requests(outlet& to) noexcept : to_(to) {}

    void create(const std::string& path, std::string_view data, node_kind lives, replied done);
    void remove(const std::string& path, replied done);
    void write(const std::string& path, std::string_view data, replied done);
    void read(const std::string& path, replied done);
    /// The next change is told; a node that is not there is not watched.
    void read_and_watch(const std::string& path, replied done);
    void children(const std::string& path, replied done);
    void children_and_watch(const std::string& path, replied done);
    void exists(const std::string& path, replied done);
    /// What is read after it is no older than this.
    void sync(const std::string& path, replied done);
    void multi(const std::vector<change>& changes, replied done);

private:
    template <class Send>
    void submit(bool writes, std::size_t size, replied done, Send send);
    void refuse(replied done, status why);

    outlet& to_;
};

/// Those that a node is in, and the node; what is there already stays.
void make_nodes(requests& by, const std::string& path);

} // namespace colock::zookeeper::detail
