# Finds Boost, and says which components it is sufficient for.

# The oldest version that is tested, Debian 13's default. Tests and examples that need a newer Asio are left out, see
# colock_require_cancel_after.
set(colock_oldest_boost 1.83)
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
        "  On Debian 13, libboost-dev is sufficient for everything except Redis. ${colock_boost_remedy}.\n")
endif()
message(STATUS "colock: found Boost ${Boost_VERSION} in ${Boost_DIR}")
message(STATUS "colock: redis needs Boost >= ${colock_oldest_boost_for_redis}, because of a defect of older versions; "
    "all other components need Boost >= ${colock_oldest_boost}, the oldest version that is tested")

# The headers refuse another Boost than that of the build.
math(EXPR colock_boost_version_macro
    "${Boost_VERSION_MAJOR} * 100000 + ${Boost_VERSION_MINOR} * 100 + ${Boost_VERSION_PATCH}")
set(colock_generated_headers ${PROJECT_BINARY_DIR}/include)
configure_file(${PROJECT_SOURCE_DIR}/cmake/boost_of_build.hpp.in
    ${colock_generated_headers}/colock/detail/boost_of_build.hpp @ONLY)

# A change of Boost has to compile everything again, also if the new headers are older than the object files.
if(COLOCK_DEVELOPER)
    add_compile_definitions(COLOCK_COMPILED_WITH_BOOST=${Boost_VERSION})
endif()

# For MongoDB. Found here, because ColockInstall.cmake asks for its file.
find_package(boost_context ${Boost_VERSION} EXACT CONFIG QUIET HINTS ${Boost_DIR}/..)

# For the command. The static library is preferred: a shared one of another Debian may need a newer libstdc++ than this
# system has, and the command is the only user.
set(Boost_USE_STATIC_LIBS ON)
find_package(boost_program_options ${Boost_VERSION} EXACT CONFIG QUIET HINTS ${Boost_DIR}/..)
unset(Boost_USE_STATIC_LIBS)
if(NOT boost_program_options_FOUND)
    find_package(boost_program_options ${Boost_VERSION} EXACT CONFIG QUIET HINTS ${Boost_DIR}/..)
endif()
