# Sets colock_compiler_defect to the reason why this compiler is refused, or to nothing. The installed package asks too:
# what a compiler does wrong, it does in the user's coroutines.
set(colock_compiler_defect "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    string(CONCAT colock_compiler_defect
        "colock refuses GCC ${CMAKE_CXX_COMPILER_VERSION}: below 13, GCC destroys some temporaries of a co_await expression "
        "twice. Use GCC 13 or later, or Clang (on Debian 12: CXX=clang++-19)")
endif()
