# A unity build includes the source files into another one. GCC then warns of every coroutine that keeps an object whose
# type is in the anonymous namespace of a source file, as if that type were defined in a header.
function(colock_allow_unity_build target)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# colock_add_library(NAME
#     HEADERS header...       public headers, relative to include/colock
#     SOURCES source...
#     PUBLIC target...        what its headers need
#     PRIVATE target...       what only its sources need
#     PACKAGES package...)    what a consumer has to find before it can link it
#
# One room of the library: the target colock::NAME, and the component NAME of the installed package.
function(colock_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;PUBLIC;PRIVATE;PACKAGES")
    set(target colock_${name})

    add_library(${target} ${arg_SOURCES})
    add_library(colock::${name} ALIAS ${target})
    list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/colock/)
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${arg_HEADERS})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    set_target_properties(${target} PROPERTIES
        EXPORT_NAME ${name}
        CXX_EXTENSIONS OFF
        POSITION_INDEPENDENT_CODE ON
        VERIFY_INTERFACE_HEADER_SETS ${COLOCK_DEVELOPER})
    # A unity build takes a third of the compiler's time. CMAKE_UNITY_BUILD decides if it is set.
    if(NOT DEFINED CMAKE_UNITY_BUILD)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
    endif()
    if(COLOCK_DEVELOPER)
        colock_warnings(${target})
    else()
        colock_allow_unity_build(${target})
    endif()

    set(needs ${arg_PUBLIC} ${arg_PRIVATE})
    list(FILTER needs INCLUDE REGEX "^colock::")
    list(TRANSFORM needs REPLACE "^colock::" "")
    set_property(GLOBAL APPEND PROPERTY colock_components ${name})
    set_property(GLOBAL PROPERTY colock_${name}_needs ${needs})
    set_property(GLOBAL PROPERTY colock_${name}_packages ${arg_PACKAGES})
endfunction()

# colock_driver(NAME
#     FOUND value            whether it was found
#     NEEDS text             what it is called
#     REMEDY text)           what to do where it was not found
#
# The driver of a backend. The option COLOCK_<NAME> decides with FOUND whether the backend is built: sets
# COLOCK_<NAME>_ENABLED to that, says one line about a backend that is left out, and fails if that was asked for.
function(colock_driver name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOUND;NEEDS;REMEDY" "")
    string(TOUPPER "COLOCK_${name}" option)
    set(${option} AUTO CACHE STRING "The ${name} backend: AUTO (if ${arg_NEEDS} is found), ON (fail without it), OFF")
    set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
    set(enabled OFF)
    if(${option} STREQUAL "AUTO")
        if(arg_FOUND)
            set(enabled ON)
        else()
            message(NOTICE "colock::${name} is left out: ${arg_REMEDY}")
        endif()
    elseif(${option})
        if(NOT arg_FOUND)
            message(FATAL_ERROR "colock::${name} was asked for (${option}=${${option}}): ${arg_REMEDY}")
        endif()
        set(enabled ON)
    endif()
    set(${option}_ENABLED ${enabled} PARENT_SCOPE)
endfunction()

# colock_backend(NAME
#     SCHEMES scheme...       of its URLs, without what may follow a '+'; at most four
#     FORMS text              how its URLs are written
#     [NEEDS text             its driver
#      ...])                  what else colock_driver is told
#
# Makes it known to colock::connect, whether it is built or not. Its entry file defines colock::<NAME>::connect.
function(colock_backend name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "FORMS;NEEDS" "SCHEMES")
    set_property(GLOBAL APPEND PROPERTY colock_backends ${name})
    set_property(GLOBAL PROPERTY colock_backend_${name}_schemes ${arg_SCHEMES})
    set_property(GLOBAL PROPERTY colock_backend_${name}_forms ${arg_FORMS})
    set_property(GLOBAL PROPERTY colock_backend_${name}_needs ${arg_NEEDS})
    if(NOT arg_NEEDS)
        return()
    endif()
    string(TOUPPER "COLOCK_${name}_ENABLED" enabled)
    colock_driver(${name} NEEDS ${arg_NEEDS} ${arg_UNPARSED_ARGUMENTS})
    set(${enabled} ${${enabled}} PARENT_SCOPE)
endfunction()
