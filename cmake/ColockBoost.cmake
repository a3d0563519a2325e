# colock_explain_boost(WANTED)
#
# Called after find_package(Boost ... CONFIG) found no usable version. Fails with a message that says which versions
# were found, why they cannot be used, and how to get Boost. A macro, because it reads variables that find_package sets.
macro(colock_explain_boost wanted)
    set(colock_found_boosts "")
    foreach(version config IN ZIP_LISTS Boost_CONSIDERED_VERSIONS Boost_CONSIDERED_CONFIGS)
        cmake_path(GET config PARENT_PATH folder)
        string(APPEND colock_found_boosts "  found: ${version} in ${folder}\n")
    endforeach()
    if(NOT colock_found_boosts)
        set(colock_found_boosts "  found: none (looked for BoostConfig.cmake)\n")
    endif()
    message(FATAL_ERROR
        " colock needs Boost >= ${wanted}.\n"
        "${colock_found_boosts}"
        "  Why: before 1.92, cancelling a request of Boost.Redis is undefined behaviour; nothing older is tested.\n"
        "  On Debian 12 and 13: scripts/setup.sh fetches it from trixie-backports into ~/.cache/colock and leaves the system\n"
        "  as it is; '. scripts/environment.sh' then tells CMake where it is.\n"
        "  Elsewhere: a package of your system (vcpkg, Conan and Homebrew have it, too), or the sources of\n"
        "  https://www.boost.org/releases: ./bootstrap.sh && ./b2 install --with-headers --prefix=DIR\n"
        "  (headers are enough). Then configure with -DCMAKE_PREFIX_PATH=DIR or -DBoost_DIR=DIR/lib/cmake/Boost-VERSION.\n")
endmacro()
