# colock::adapter_contract: the contract tests for adapters, also for adapters outside of this project. The library
# consists of one source, which includes all those below and becomes part of the program that links it. So it is
# compiled with the options and the Boost.Test of that program, and the linker cannot drop test cases as unreferenced.
# Compiling each source alone takes four times as long.
set(colock_contract_sources
    test/contract/adapter_grants.cpp
    test/contract/adapter_groups.cpp
    test/contract/adapter_keys.cpp
    test/contract/adapter_listing.cpp
    test/contract/adapter_queues.cpp
    test/contract/adapter_removal.cpp
    test/contract/adapter_several.cpp
    test/contract/adapter_shared.cpp
    test/contract/adapter_transfer.cpp
    test/contract/contract.cpp
    test/contract/locker_admin.cpp
    test/contract/locker_elections.cpp
    test/contract/locker_expiry.cpp
    test/contract/locker_group_order.cpp
    test/contract/locker_groups.cpp
    test/contract/locker_groups_by_id.cpp
    test/contract/locker_limited.cpp
    test/contract/locker_locks.cpp
    test/contract/locker_shared.cpp
    test/contract/locker_transfer.cpp
    test/contract/remote.cpp
    test/contract/remote_holders.cpp
    test/contract/remote_late.cpp
    test/contract/remote_lost.cpp
    test/contract/remote_outages.cpp
    test/contract/remote_resumed.cpp
    test/contract/remote_shutdowns.cpp
    test/contract/remote_waiters.cpp
    test/support/driver.cpp
    test/support/run.cpp)
set(colock_contract_private_headers
    test/contract/contract.hpp
    test/contract/locker_helpers.hpp
    test/contract/remote.hpp
    test/support/driver.hpp
    test/support/print.hpp
    test/support/run.hpp)

add_library(colock_adapter_contract INTERFACE)
add_library(colock::adapter_contract ALIAS colock_adapter_contract)
target_sources(colock_adapter_contract INTERFACE FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include
    FILES
        ${PROJECT_SOURCE_DIR}/include/colock/testing/adapter_contract.hpp
        ${PROJECT_SOURCE_DIR}/include/colock/testing/remote_contract.hpp)
set(contract_in_build)
set(contract_installed)
foreach(source IN LISTS colock_contract_sources)
    string(APPEND contract_in_build "#include \"${PROJECT_SOURCE_DIR}/${source}\"\n")
    string(APPEND contract_installed "#include \"${source}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/contract/adapter_contract.cpp CONTENT "${contract_in_build}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/contract/installed/adapter_contract.cpp CONTENT "${contract_installed}")
target_sources(colock_adapter_contract INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/contract/adapter_contract.cpp>
    $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/share/colock/adapter_contract.cpp>)
target_link_libraries(colock_adapter_contract INTERFACE colock::core)
set_target_properties(colock_adapter_contract PROPERTIES EXPORT_NAME adapter_contract)

set_property(GLOBAL APPEND PROPERTY colock_components adapter_contract)
set_property(GLOBAL APPEND PROPERTY colock_public_components adapter_contract)
set_property(GLOBAL PROPERTY colock_adapter_contract_needs core)
set_property(GLOBAL PROPERTY colock_adapter_contract_packages "")
if(COLOCK_INSTALL)
    install(FILES ${PROJECT_BINARY_DIR}/contract/installed/adapter_contract.cpp
        DESTINATION share/colock COMPONENT development)
    foreach(file IN LISTS colock_contract_sources colock_contract_private_headers)
        cmake_path(GET file PARENT_PATH folder)
        install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION share/colock/${folder} COMPONENT development)
    endforeach()
endif()
