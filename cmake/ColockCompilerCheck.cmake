# Sets colock_compiler_defect to the reason why this compiler cannot be used, or to an empty string. The installed
# package checks the compiler too, because it compiles the headers and the coroutines of the user.
set(colock_compiler_defect "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    string(CONCAT colock_compiler_defect
        "colock refuses GCC ${CMAKE_CXX_COMPILER_VERSION}: below 13, GCC destroys some temporaries of a co_await expression "
        "twice. Use GCC 13 or later, or Clang 16 or later (on Debian 12: CXX=clang++-19)")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    string(CONCAT colock_compiler_defect
        "colock refuses Clang ${CMAKE_CXX_COMPILER_VERSION}, which does not have all of C++20. Use Clang 16 or later, or "
        "GCC 13 or later (on Debian 12: CXX=clang++-19)")
endif()
