# An overlay port that builds the checkout that contains it. Not tried yet: vcpkg could not be installed where colock
# is tested.
cmake_path(GET CURRENT_PORT_DIR PARENT_PATH SOURCE_PATH)
cmake_path(GET SOURCE_PATH PARENT_PATH SOURCE_PATH)
cmake_path(GET SOURCE_PATH PARENT_PATH SOURCE_PATH)

set(backends "")
foreach(backend redis mongo)
    string(TOUPPER ${backend} option)
    if(backend IN_LIST FEATURES)
        list(APPEND backends -DCOLOCK_${option}=ON)
    else()
        list(APPEND backends -DCOLOCK_${option}=OFF)
    endif()
endforeach()

vcpkg_cmake_configure(SOURCE_PATH ${SOURCE_PATH}
    OPTIONS -DCOLOCK_DEVELOPER=OFF -DCOLOCK_ZOOKEEPER=OFF ${backends})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/colock)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
