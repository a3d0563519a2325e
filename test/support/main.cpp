// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#define BOOST_TEST_MODULE colock
#include <boost/test/included/unit_test.hpp>
