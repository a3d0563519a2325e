// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// The sources of the driver. They take as long to compile as all other files together, so they have their own file.
#include <boost/redis/src.hpp>
