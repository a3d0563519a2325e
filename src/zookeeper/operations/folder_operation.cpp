// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/folder_operation.hpp"

#include <cstddef>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// The driver's code for a kind of node that the server does not support.
constexpr int unimplemented = -6;

} // namespace

void folder_operation::make_folders(requests& sender, const std::string& folder)
{
    for (std::size_t end = folder.find('/', 1); end != std::string::npos; end = folder.find('/', end + 1))
        make_folder(sender, folder.substr(0, end));
    make_folder(sender, folder);
}

void folder_operation::make_folder(requests& sender, const std::string& folder)
{
    if (sessions().folders().find(folder) != folder_state::unknown)
        return;
    sender.create(folder, {}, node_kind::persistent, then(&folder_operation::on_folder_reply, folder));
    sessions().folders().note(folder, folder_state::uncontended);
}

void folder_operation::make_container(requests& sender, const std::string& folder)
{
    sender.create(folder, {}, plain_folders_ ? node_kind::persistent : node_kind::container,
        then(&folder_operation::on_folder_reply, folder));
}

void folder_operation::on_folder_reply(const reply& reply, const std::string& folder)
{
    auto& folders = sessions().folders();
    // If access is denied, the folder exists, or no node of ours can exist in it. Another request would change
    // neither.
    const bool exists = reply.ok() || reply.outcome == status::node_exists || reply.outcome == status::access_denied;
    folders.note(folder, exists ? folder_state::uncontended : folder_state::unknown);
    // Any parent of the folder may be missing.
    for (auto end = folder.rfind('/'); reply.outcome == status::no_node && end != 0 && end != std::string::npos;
        end = folder.rfind('/', end - 1))
        folders.note(folder.substr(0, end), folder_state::unknown);
    if (reply.outcome == status::refused && reply.code == unimplemented)
        plain_folders_ = true;
    else if (!reply.ok() && reply.outcome != status::node_exists && folder_failure_.outcome == status::no_node)
        folder_failure_ = reply;
}

} // namespace colock::inline v0::zookeeper::detail
