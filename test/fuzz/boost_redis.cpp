// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The parts of Boost.Redis that the fuzzers need. In the library, src/redis/connection/driver.cpp compiles all of it.
#include <boost/redis/impl/error.ipp>
#include <boost/redis/resp3/impl/parser.ipp>
#include <boost/redis/resp3/impl/type.ipp>
