// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

// The driver's own bodies. Takes as long to compile as all else together, so it stands alone.
#include <boost/redis/src.hpp>
