# Finds ZooKeeper's C client, in its single-threaded build, and defines the target ZookeeperClient::st.
find_path(ZookeeperClient_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZookeeperClient_LIBRARY zookeeper_st)
mark_as_advanced(ZookeeperClient_INCLUDE_DIR ZookeeperClient_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZookeeperClient
    REQUIRED_VARS ZookeeperClient_LIBRARY ZookeeperClient_INCLUDE_DIR)

if(ZookeeperClient_FOUND AND NOT TARGET ZookeeperClient::st)
    add_library(ZookeeperClient::st UNKNOWN IMPORTED)
    set_target_properties(ZookeeperClient::st PROPERTIES
        IMPORTED_LOCATION ${ZookeeperClient_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${ZookeeperClient_INCLUDE_DIR})
endif()
