# What only colock's own build uses.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Paths relative to the checkout, so that another checkout finds what this one compiled.
find_program(COLOCK_CCACHE ccache DOC "The compiler cache; empty to do without")
if(COLOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${COLOCK_CCACHE})
endif()

# And in what the compiler makes of __FILE__: the files of a unity build are included by their absolute paths.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Warnings are errors with -DCMAKE_COMPILE_WARNING_AS_ERROR=ON only, which .ci/run sets: the next compiler may warn of more.
#
# GCC 14 takes an atomic behind the iterator of an intrusive list for one at address zero, and with -O3 a list of two
# strings for a longer one.
# GCC's own -Wshadow also minds a variable called like a type or a function of its class; Clang's does not.
function(colock_warnings target)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion
        $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>
        "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-array-bounds>")
    colock_allow_unity_build(${target})
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
#     [LIBRARIES target...]  beside colock::memory
#     [LABELS label...]      for ctest -L; default: NAME
#     [TIMEOUT seconds]      of each suite; default: 120
#     [PROCESSORS number]    that each suite keeps busy, of twice as many as there are; default: 1
#     [SERIAL])              its suites measure time or load the machine: nothing else runs beside them
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

    # The executable is asked for its suites when ctest runs, so that none can be forgotten in a list.
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
