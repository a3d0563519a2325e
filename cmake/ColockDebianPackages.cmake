# cpack makes three Debian packages from a build with shared libraries: the libraries, what a developer needs, and the
# command.
# packaging/debian/build.sh calls it.
if(NOT BUILD_SHARED_LIBS)
    return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The colock authors")
set(CPACK_COMPONENTS_ALL runtime development command)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
# So that packages of programs can depend on the libraries. Later releases with the same SOVERSION are compatible.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libcolock${colock_soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${PROJECT_DESCRIPTION} (shared libraries)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcolock-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "${PROJECT_DESCRIPTION} (headers, CMake and pkg-config files)")
# Asio's types are part of the binary interface, so a program needs the same version of Boost.
string(REGEX MATCH "^[0-9]+[.][0-9]+" boost_minor ${Boost_VERSION})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libcolock${colock_soversion} (= ${PROJECT_VERSION}-1), libboost${boost_minor}-dev")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME colock)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "${PROJECT_DESCRIPTION} (command for scripts)")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
# The command is linked with libraries of the other package.
foreach(component IN LISTS colock_components)
    get_target_property(folder colock_${component} BINARY_DIR)
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${folder})
endforeach()
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libcolock${colock_soversion} (= ${PROJECT_VERSION}-1)")
include(CPack)
