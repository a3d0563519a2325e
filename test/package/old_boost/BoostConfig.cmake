message(FATAL_ERROR "a Boost of the wrong version was taken")
