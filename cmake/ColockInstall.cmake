# Installs the libraries, and what find_package(colock [COMPONENTS ...]) and pkg-config need. Every library is a
# component with its own export set and its own pkg-config file, so that a program needs only the drivers of the
# backends that it uses.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/colock)
set(colock_component_table "")
get_property(colock_components GLOBAL PROPERTY colock_components)
foreach(component IN LISTS colock_components)
    install(TARGETS colock_${component} EXPORT colock_${component}
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development
        FILE_SET HEADERS COMPONENT development)
    install(EXPORT colock_${component} NAMESPACE colock::
        DESTINATION ${package_dir} FILE colock-${component}-targets.cmake COMPONENT development)
    foreach(fact needs packages)
        get_property(colock_${component}_${fact} GLOBAL PROPERTY colock_${component}_${fact})
        string(APPEND colock_component_table "set(colock_${component}_${fact} ${colock_${component}_${fact}})\n")
    endforeach()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/colock-config.cmake.in
    ${PROJECT_BINARY_DIR}/colock-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/colock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
        ${PROJECT_BINARY_DIR}/colock-config.cmake
        ${PROJECT_BINARY_DIR}/colock-config-version.cmake
        ${PROJECT_SOURCE_DIR}/cmake/ColockCompilerCheck.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindZookeeperClient.cmake
    DESTINATION ${package_dir} COMPONENT development)
if(TARGET colock-command)
    install(TARGETS colock-command RUNTIME COMPONENT command)
    install(FILES ${PROJECT_BINARY_DIR}/src/command/colock.1
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
    install(FILES ${PROJECT_SOURCE_DIR}/src/command/completion.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME colock COMPONENT command)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

# The files for pkg-config. First, the names that pkg-config or the linker uses for the packages of CMake:
set(colock_pc_module_OpenSSL openssl)
set(colock_pc_module_mongoc-1.0 libmongoc-1.0)
set(colock_pc_library_boost_context $<TARGET_LINKER_FILE:Boost::context>)
if(NOT Boost_INCLUDE_DIRS STREQUAL "/usr/include") # the dynamic linker does not find this Boost by itself
    string(APPEND colock_pc_library_boost_context " -Wl,-rpath,$<TARGET_LINKER_FILE_DIR:Boost::context>")
endif()
set(colock_pc_library_ZookeeperClient ${ZookeeperClient_LIBRARY})
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE colock_pc_prefix)
set(boost_flags "")
if(NOT Boost_INCLUDE_DIRS STREQUAL "/usr/include")
    set(boost_flags " -I${Boost_INCLUDE_DIRS}")
endif()
foreach(component IN LISTS colock_components)
    get_target_property(kind colock_${component} TYPE)
    if(kind STREQUAL "INTERFACE_LIBRARY") # the contract tests are sources
        continue()
    endif()
    set(modules "")
    set(libraries "")
    foreach(need IN LISTS colock_${component}_needs)
        string(REPLACE "_" "-" need ${need})
        list(APPEND modules colock-${need})
    endforeach()
    foreach(package IN LISTS colock_${component}_packages)
        list(APPEND modules ${colock_pc_module_${package}})
        list(APPEND libraries ${colock_pc_library_${package}})
    endforeach()
    list(JOIN modules " " modules)
    list(JOIN libraries " " libraries)
    string(REPLACE "_" "-" name colock-${component})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc CONTENT
"prefix=\${pcfiledir}/${colock_pc_prefix}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: ${name}
Description: ${PROJECT_DESCRIPTION}: ${component}
Version: ${PROJECT_VERSION}
Requires: ${modules}
Cflags: -I\${includedir}${boost_flags} -pthread
Libs: -L\${libdir} -l${name} ${libraries} -pthread
")
    install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

include(ColockDebianPackages)
