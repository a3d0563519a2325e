# Settings and functions that only the build of colock itself uses.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Stores paths relative to the checkout, so that another checkout can use the same cache entries.
find_program(COLOCK_CCACHE ccache DOC "The compiler cache; empty to do without")
if(COLOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${COLOCK_CCACHE})
endif()

# The same for __FILE__: a unity build includes its files by absolute paths.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Warnings are errors only with -DCMAKE_COMPILE_WARNING_AS_ERROR=ON, which .ci/run sets, because a newer compiler may
# have more warnings.
#
# Two warnings of GCC are disabled: GCC 14 takes an atomic behind the iterator of an intrusive list for an object at
# address zero. With -O3 it takes a list of two strings for a longer list.
# -Wshadow=local for GCC: with plain -Wshadow, GCC (unlike Clang) also warns of a variable that has the name of a type
# or a function of its class.
function(colock_warnings target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion
        $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>
        "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-array-bounds>")
    colock_allow_unity_build(${target})
endfunction()

# Empties a list of source files that need asio::cancel_after if Boost does not have it, and prints a line that says so.
function(colock_require_cancel_after files)
    if(Boost_VERSION VERSION_LESS 1.86)
        cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
        list(JOIN ${files} ", " names)
        message(NOTICE "colock: leaves out ${names} in ${folder}: asio::cancel_after needs Boost >= 1.86")
        set(${files} "" PARENT_SCOPE)
    endif()
endfunction()

# colock_add_program(TARGET SOURCES source... LIBRARIES target...)
function(colock_add_program target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    colock_warnings(${target})
endfunction()

# colock_add_test(NAME
#     SOURCES source...      Boost.Test files, without a main
#     [LIBRARIES target...]  in addition to colock::memory
#     [LABELS label...]      labels for ctest -L; default: NAME
#     [TIMEOUT seconds]      time limit of each suite; default: 120
#     [PROCESSORS number]    slots that each suite occupies, of two slots per processor; default: 1
#     [SERIAL])              no other test runs at the same time, because the suites measure time or load the machine
#
# Builds colock_test_NAME. Each of its outermost suites becomes a test of ctest, NAME.<suite>.
function(colock_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "TIMEOUT;PROCESSORS" "SOURCES;LIBRARIES;LABELS")
    if(NOT arg_LABELS)
        set(arg_LABELS ${name})
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 120)
    endif()
    if(NOT arg_PROCESSORS)
        set(arg_PROCESSORS 1)
    endif()
    set(target colock_test_${name})
    colock_add_program(${target} SOURCES ${arg_SOURCES} LIBRARIES colock_test_main colock_test_support ${arg_LIBRARIES})

    # ctest asks the executable for its suites when ctest runs, so no list of suites has to be maintained.
    set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake)
    file(GENERATE OUTPUT ${include} CONTENT
"set(name [==[${name}]==])
set(executable [==[$<TARGET_FILE:${target}>]==])
set(labels [==[${arg_LABELS}]==])
set(timeout ${arg_TIMEOUT})
set(serial ${arg_SERIAL})
set(processors ${arg_PROCESSORS})
include([==[${PROJECT_SOURCE_DIR}/cmake/ColockSuites.cmake]==])
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
