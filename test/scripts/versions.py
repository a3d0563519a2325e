#!/usr/bin/env python3
"""Checks that everything that names the version of colock names the same one: version.hpp, CHANGELOG.md, CMake with its
package and pkg-config files, the Conan recipe, and the pages and programs that ask for a minor version. The number of
the binary interface has to be the same in CMake, the inline namespaces and the names of the Debian package.

    test/scripts/versions.py BUILD_FOLDER VERSION SOVERSION        those of CMake
"""
import pathlib
import re
import sys
import types

root = pathlib.Path(__file__).resolve().parent.parent.parent


def conan_version() -> str:
    """The version that the Conan recipe sets. Conan itself need not be installed."""
    stubs = {
        "conan": {"ConanFile": object},
        "conan.tools": {},
        "conan.tools.cmake": {"CMake": object, "CMakeToolchain": object, "cmake_layout": None},
        "conan.tools.files": {"copy": None, "load": lambda recipe, path: pathlib.Path(path).read_text()},
    }
    for name, members in stubs.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    recipe_file = root / "packaging" / "conan" / "conanfile.py"
    names: dict = {}
    exec(compile(recipe_file.read_text(), recipe_file, "exec"), names)
    recipe = names["ColockConan"]()
    recipe.recipe_folder = str(recipe_file.parent)
    recipe.set_version()
    return recipe.version


def found(path: pathlib.Path, pattern: str) -> list[tuple[str, str]]:
    """The places of a file that match, and what each of them says."""
    return [(str(path.relative_to(root) if path.is_relative_to(root) else path), match[1])
            for match in re.finditer(pattern, path.read_text(errors="replace"), flags=re.MULTILINE)]


def files(*patterns: str) -> list[pathlib.Path]:
    return [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_file()]


def main() -> None:
    build, cmake_version, soversion = pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]
    header = (root / "include/colock/version.hpp").read_text()
    version = ".".join(re.findall(r"#define COLOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, flags=re.MULTILINE))
    minor_version = version.rpartition(".")[0]
    text_files = files("*.md", "docs/*.md", "packaging/**/*", "test/package/**/*", "test/docs/**/*")

    # Of each kind: the right number, and the places that name it, at least one.
    kinds = {
        "CMake": (version, [("CMakeLists.txt", cmake_version)]),
        "Conan": (version, [("packaging/conan/conanfile.py", conan_version())]),
        # The newest version is the first one.
        "the changelog": (version, found(root / "CHANGELOG.md", r"^## \[?([^\s\]]+)")[:1]),
        "the comment of version()": (version, found(root / "include/colock/version.hpp", r'such as "([0-9.]+)"')),
        "the README": (version, found(root / "README.md", r"\*\*Version\*\*: ([0-9.]+\d)")),
        "the package of CMake": (
            version, found(build / "colock-config-version.cmake", r'set\(PACKAGE_VERSION "([0-9.]+)"')),
        "pkg-config": (version, [place for path in sorted(build.glob("pkgconfig/*.pc"))
                                 for place in found(path, r"^Version: (.*)$")]),
        "find_package": (minor_version, [place for path in text_files
                                         for place in found(path, r"find_package\(colock ([0-9.]+)")]),
        "the inline namespace": (soversion, [place for path in files("include/**/*.hpp")
                                             for place in found(path, r"^namespace colock(?:::\w+)*::inline v(\d+)")]),
        "colock::v": (soversion, [place for path in text_files for place in found(path, r"colock::v(\d+)")]),
        "the Debian package": (soversion, [place for path in text_files for place in found(path, r"libcolock(\d+)")]),
    }
    failures = []
    for kind, (right, places) in kinds.items():
        failures += [f"{kind}: {file} says {number}, not {right}" for file, number in places if number != right]
        if not places:
            failures.append(f"{kind}: no version was found")
    if failures:
        sys.exit("\n".join(f"versions: error: {failure}" for failure in failures))


if __name__ == "__main__":
    main()
