# Finds Boost, and says which components it is sufficient for.

# The library also compiles with Boost 1.83, but its tests do not: their timers rely on a default completion token.
set(colock_oldest_boost 1.88)
# In older versions, cancelling a request of Boost.Redis is undefined behaviour.
set(colock_oldest_boost_for_redis 1.92)

find_package(Boost ${colock_oldest_boost} CONFIG QUIET COMPONENTS headers)

string(CONCAT colock_boost_remedy
    "On Debian 12 and 13, scripts/setup.sh fetches Boost 1.92 from trixie-backports into ~/.cache/colock and leaves the "
    "system as it is; '. scripts/environment.sh' then tells CMake where it is. Elsewhere: a package of your system "
    "(vcpkg, Conan and Homebrew have it, too), or the sources of https://www.boost.org/releases: ./bootstrap.sh && "
    "./b2 install --with-headers --with-context --prefix=DIR. Then configure with -DCMAKE_PREFIX_PATH=DIR or "
    "-DBoost_DIR=DIR/lib/cmake/Boost-VERSION")

if(NOT Boost_FOUND)
    set(found "")
    foreach(version config IN ZIP_LISTS Boost_CONSIDERED_VERSIONS Boost_CONSIDERED_CONFIGS)
        cmake_path(GET config PARENT_PATH folder)
        string(APPEND found "  found: ${version} in ${folder}\n")
    endforeach()
    if(NOT found)
        set(found "  found: none (looked for BoostConfig.cmake)\n")
    endif()
    message(FATAL_ERROR
        " colock needs Boost >= ${colock_oldest_boost}, the oldest version that is tested; for Redis >= "
        "${colock_oldest_boost_for_redis}.\n"
        "${found}"
        "  ${colock_boost_remedy}.\n")
endif()
message(STATUS "colock: Boost ${Boost_VERSION} in ${Boost_DIR}. Redis needs ${colock_oldest_boost_for_redis} or later, "
    "because of a defect of older versions of Boost.Redis; everything else needs ${colock_oldest_boost} or later")

# For MongoDB. Found here, because ColockInstall.cmake asks for its file.
find_package(boost_context ${Boost_VERSION} CONFIG QUIET)
