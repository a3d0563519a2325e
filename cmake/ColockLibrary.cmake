# A unity build includes source files into another file. GCC then warns of every coroutine with an object whose type is
# in an anonymous namespace, as if a header defined the type.
function(colock_allow_unity_build target)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# colock_add_library(NAME
#     [INTERNAL]              only other libraries of colock link it
#     [STATIC]                static, also with BUILD_SHARED_LIBS
#     HEADERS header...       public headers, relative to include/colock
#     SOURCES source...
#     PUBLIC target...        libraries that its headers need
#     PRIVATE target...       libraries that only its sources need
#     PACKAGES package...)    packages that a consumer has to find before it can link the static library
#
# Defines one library: the target colock::NAME, and the component NAME of the installed package.
#
# With BUILD_SHARED_LIBS, a library exports only what its public headers declare. An internal library is then linked
# into the libraries that use it, and is not installed.
function(colock_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "INTERNAL;STATIC" "" "HEADERS;SOURCES;PUBLIC;PRIVATE;PACKAGES")
    set(target colock_${name})

    if(arg_INTERNAL OR arg_STATIC)
        add_library(${target} STATIC ${arg_SOURCES})
    else()
        add_library(${target} ${arg_SOURCES})
    endif()
    add_library(colock::${name} ALIAS ${target})
    list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/colock/)
    target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${arg_HEADERS})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    # A static core contains the only copy of colock_util. Each shared library has a copy of its own.
    if(name STREQUAL "core" OR (BUILD_SHARED_LIBS AND NOT arg_INTERNAL AND NOT arg_STATIC))
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:colock_util>)
    endif()
    string(REPLACE "_" "-" file_name "colock-${name}")
    set_target_properties(${target} PROPERTIES
        EXPORT_NAME ${name}
        OUTPUT_NAME ${file_name}
        DEFINE_SYMBOL "" # both kinds of library share their entries in the compiler cache
        VERSION ${PROJECT_VERSION}
        SOVERSION ${colock_soversion}
        # An installed library finds the other ones, and a Boost that is not the system's.
        INSTALL_RPATH "$ORIGIN"
        INSTALL_RPATH_USE_LINK_PATH ON
        VERIFY_INTERFACE_HEADER_SETS ${COLOCK_DEVELOPER})
    colock_compile_as_library(${target})

    if(NOT arg_INTERNAL)
        set_property(GLOBAL APPEND PROPERTY colock_public_components ${name})
    elseif(BUILD_SHARED_LIBS)
        return()
    endif()
    set(needs ${arg_PUBLIC})
    if(NOT BUILD_SHARED_LIBS)
        list(APPEND needs ${arg_PRIVATE})
    else()
        set(arg_PACKAGES "")
    endif()
    list(FILTER needs INCLUDE REGEX "^colock::")
    list(TRANSFORM needs REPLACE "^colock::" "")
    set_property(GLOBAL APPEND PROPERTY colock_components ${name})
    set_property(GLOBAL PROPERTY colock_${name}_needs ${needs})
    set_property(GLOBAL PROPERTY colock_${name}_packages ${arg_PACKAGES})
endfunction()

# Sets what all libraries have in common. Everything that is not marked with COLOCK_EXPORT is hidden.
function(colock_compile_as_library target)
    set_target_properties(${target} PROPERTIES
        CXX_EXTENSIONS OFF
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON
        POSITION_INDEPENDENT_CODE ON)
    # A unity build takes a third of the compile time. If CMAKE_UNITY_BUILD is set, its value is used instead.
    if(NOT DEFINED CMAKE_UNITY_BUILD)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
    endif()
    if(COLOCK_DEVELOPER)
        colock_warnings(${target})
    else()
        colock_allow_unity_build(${target})
    endif()
endfunction()

# Links the program with all backends that are built. See tools/built_backends.hpp.
function(colock_link_built_backends target)
    target_link_libraries(${target} PRIVATE colock::connect)
    foreach(backend IN ITEMS redis zookeeper mongo)
        if(TARGET colock::${backend})
            string(TOUPPER COLOCK_BUILT_${backend} built)
            target_link_libraries(${target} PRIVATE colock::${backend})
            target_compile_definitions(${target} PRIVATE ${built})
        endif()
    endforeach()
endfunction()

# colock_driver(NAME
#     FOUND value            whether the driver was found
#     NEEDS text             name of the driver
#     REMEDY text)           what to do if the driver was not found
#
# Declares the driver of a backend. The option COLOCK_<NAME> and FOUND decide whether the backend is built;
# COLOCK_<NAME>_ENABLED is set to the result. Prints one line if a backend is left out. Fails if the option asks for a
# backend whose driver was not found.
function(colock_driver name)
    set_property(GLOBAL APPEND PROPERTY colock_backends ${name})
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
