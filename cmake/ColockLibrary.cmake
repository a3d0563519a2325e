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
    if(COLOCK_DEVELOPER)
        colock_warnings(${target})
    endif()

    set(needs ${arg_PUBLIC} ${arg_PRIVATE})
    list(FILTER needs INCLUDE REGEX "^colock::")
    list(TRANSFORM needs REPLACE "^colock::" "")
    set_property(GLOBAL APPEND PROPERTY colock_components ${name})
    set_property(GLOBAL PROPERTY colock_${name}_needs ${needs})
    set_property(GLOBAL PROPERTY colock_${name}_packages ${arg_PACKAGES})
endfunction()

# colock_backend_enabled(RESULT BACKEND FOUND REMEDY)
#
# Decides by the option COLOCK_<BACKEND> and by whether its driver was found. Says one line about a backend that is left
# out, and fails if it was asked for.
function(colock_backend_enabled result backend found remedy)
    string(TOUPPER "COLOCK_${backend}" option)
    set(enabled OFF)
    if(${option} STREQUAL "AUTO")
        if(found)
            set(enabled ON)
        else()
            message(NOTICE "colock::${backend} is left out: ${remedy}")
        endif()
    elseif(${option})
        if(NOT found)
            message(FATAL_ERROR "colock::${backend} was asked for (${option}=${${option}}): ${remedy}")
        endif()
        set(enabled ON)
    endif()
    set(${result} ${enabled} PARENT_SCOPE)
endfunction()
