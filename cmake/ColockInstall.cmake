# find_package(colock [COMPONENTS ...]): every library is a component with its own export set. So a user needs only the
# drivers of the backends that the program uses.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/colock)
set(colock_component_table "")
get_property(colock_components GLOBAL PROPERTY colock_components)
foreach(component IN LISTS colock_components)
    install(TARGETS colock_${component} EXPORT colock_${component} FILE_SET HEADERS)
    install(EXPORT colock_${component}
        NAMESPACE colock:: DESTINATION ${package_dir} FILE colock-${component}-targets.cmake)
    foreach(fact needs packages)
        get_property(value GLOBAL PROPERTY colock_${component}_${fact})
        string(APPEND colock_component_table "set(colock_${component}_${fact} ${value})\n")
    endforeach()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/colock-config.cmake.in
    ${PROJECT_BINARY_DIR}/colock-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/colock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
        ${PROJECT_BINARY_DIR}/colock-config.cmake
        ${PROJECT_BINARY_DIR}/colock-config-version.cmake
        ${PROJECT_SOURCE_DIR}/cmake/ColockCompiler.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindZookeeperClient.cmake
    DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
