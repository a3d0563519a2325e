// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"
#include "zookeeper/driver/zk_client.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// Whether a request may be joined with others of its turn: it is carried out with all of them, or is `parted`.
enum class batching : unsigned char
{
    welcome,
    none,
};

/// What may be asked of a session. What is asked in one turn goes out at its end in one write, or in one for each few
/// hundred: first those that may be joined, in few transactions, which cost the server as much as few requests; then
/// the others, and shared lists last. Each kind keeps its order. It is sent while the session is connected, or not at
/// all. Its completion is called later, on the strand; if it was cut off meanwhile, with `unanswered`.
///
/// Thread safety: none.
class requests
{
public:
    /// Where they go.
    class outlet
    {
    public:
        /// False: none can be sent now. Else `flush` is called at the end of this turn.
        [[nodiscard]] virtual bool take_request() = 0;
        /// Null: none can be sent any more.
        [[nodiscard]] virtual zk_client* sender() = 0;
        /// It has its answer, or was not sent: to be told later.
        virtual void tell_later(std::unique_ptr<request> answered) = 0;

    protected:
        ~outlet() = default;
    };

    explicit requests(outlet& to) noexcept : to_(to) {}

    /// An ephemeral sequential node in a folder whose data is nobody's. The answer tells how many nodes the folder has
    /// then, which is counted in the same transaction.
    void enter(const std::string& folder, std::string_view name, std::string_view data, batching with, replied done);
    void leave(const std::string& path, batching with, replied done);

    void create(const std::string& path, std::string_view data, node_kind lives, replied done);
    void remove(const std::string& path, replied done);
    void write(const std::string& path, std::string_view data, replied done);
    void read(const std::string& path, replied done);
    /// The next change is told; a node that is not there is not watched.
    void read_and_watch(const std::string& path, replied done);
    void children(const std::string& path, replied done);
    void children_and_watch(const std::string& path, replied done);
    /// Lists the children of a folder, after all requests that were made until now. Calls for the same folder share one
    /// request until it is sent. Only one such request for each folder is in flight, and calls meanwhile share the
    /// next, so that the cost of a crowd in one folder grows with time, not with the number of its members.
    void shared_children(const std::string& path, replied done);
    void exists(const std::string& path, replied done);
    /// What is read after it is no older than this.
    void sync(const std::string& path, replied done);
    void multi(std::vector<change> changes, replied done);

    [[nodiscard]] bool empty() const noexcept { return waiting_.empty() && unsent_lists_ == 0; }
    /// Sends what was asked for. True if there is more, which is for another turn.
    [[nodiscard]] bool flush();
    /// What was asked for, and is not sent: to be told so.
    [[nodiscard]] told_list take_unsent() noexcept;

private:
    enum class kind : unsigned char
    {
        enter,
        leave,
        create,
        remove,
        write,
        read,
        read_and_watch,
        children,
        children_and_watch,
        exists,
        sync,
        multi,
    };
    struct pending_request
    {
        kind what;
        batching with = batching::none;
        node_kind lives = node_kind::persistent;
        /// Of one that enters: the folder.
        std::string path{};
        std::string name{};
        std::string data{};
        std::vector<change> changes{};
        std::unique_ptr<request> asked{};
    };
    class joint;

    /// A request of a folder's children that several share.
    struct shared_list
    {
        /// To be answered by the next one.
        std::vector<std::unique_ptr<request>> asked{};
        bool is_in_flight = false;
    };

    void submit(pending_request added, replied done);
    void send_lists(zk_client& by);
    void list_answered(const std::string& path, std::vector<std::unique_ptr<request>> asked, const reply& got);
    void refuse(std::unique_ptr<request> unsent, status why);
    void refuse_all();
    [[nodiscard]] static bool may_join(const pending_request& which) noexcept;
    void send_joint(zk_client& by, std::vector<pending_request>& all);
    /// \param part which of them
    static void send_part(zk_client& by, std::vector<pending_request>& all, std::span<const std::size_t> part);
    static void send(zk_client& by, pending_request& which);

    outlet& to_;
    std::vector<pending_request> waiting_;
    std::map<std::string, shared_list> lists_;
    /// Number of folders whose children are asked for, and that have no request in flight.
    std::size_t unsent_lists_ = 0;
};

/// Those that a node is in, and the node; what is there already stays. Nobody is told.
void make_nodes(requests& by, const std::string& path);

} // namespace colock::zookeeper::detail
