# Conan 2 recipe. Boost, and the drivers of the backends, come from the system, as CMake finds them.
#
#   conan create packaging/conan
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

BACKENDS = ("redis", "zookeeper", "mongo")


class ColockConan(ConanFile):
    name = "colock"
    description = "Distributed locks for Boost.Asio programs"
    license = "BSL-1.0"
    topics = ("asio", "distributed-lock", "mutex", "redis", "zookeeper", "mongodb")
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    # A backend is AUTO (built if its driver is found), ON (fails without it) or OFF.
    options = {"shared": [True, False], **{backend: ["AUTO", "ON", "OFF"] for backend in BACKENDS}}
    default_options = {"shared": False, **{backend: "AUTO" for backend in BACKENDS}}

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._checkout, "include", "colock", "version.hpp"))
        numbers = re.findall(r"#define COLOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "tools/*", "test/contract/*", "test/support/*"):
            copy(self, pattern, self._checkout, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["COLOCK_DEVELOPER"] = False
        for backend in BACKENDS:
            toolchain.cache_variables["COLOCK_" + backend.upper()] = str(self.options.get_safe(backend))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # find_package uses the package configuration of colock itself, which also finds Boost.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "colock")]
