# Prints why a compiler is refused.
#
#   cmake -DCMAKE_CXX_COMPILER_ID=GNU -DCMAKE_CXX_COMPILER_VERSION=12.2 -P compiler.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ColockCompilerCheck.cmake)
message(NOTICE "${colock_compiler_defect}")
