# Declares the driver of a backend as if it had not been found. The message is checked by CMakeLists.txt.
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/ColockLibrary.cmake)
colock_driver(example FOUND FALSE NEEDS "the driver" REMEDY "install the driver")
