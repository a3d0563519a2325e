#!/usr/bin/env python3
"""Compiles all mutants of mutants.toml into a copy of the sources, and checks that the tests notice each of them.

The tests run once without a mutant, where they have to pass, and then with each mutant, until the first test fails. An
environment variable selects the mutant, so that the copy is compiled only once. Exits with 1 if a mutant without the
field `equivalent` is not noticed. The servers of the backends have to run; see scripts/mutants.sh.
"""
import argparse
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent.parent
work = root / "build" / "mutants"
tree = work / "tree"
results_file = work / "results.json"
# The lines of ctest and of the simulator that report a failure.
failure = re.compile(r"Test\s+#\d+: (\S+) \.*\s*\**(?:Failed|Timeout|Exception|Subprocess|Not Run)|^(seed \d+: .*)$")
header = '#include "../test/mutants/mutant.hpp"\n'


@dataclasses.dataclass
class Mutant:
    name: str
    file: str
    does: str
    find: str
    replace: str
    suite: str = ""
    tests: str = ""
    equivalent: str = ""

    def suites(self) -> list[str]:
        """Returns the suites that contain the code of the file, in the order in which they run."""
        folder = self.file.split("/")[1]
        suites = ["unit" if folder in ("core", "memory") else f"unit_{folder}"]
        if folder in ("core", "memory", "quorum"):
            suites.append("simulation")
        if folder in ("core", "memory"):
            suites += ["lifetime", "contract.memory_(adapter|locker)"]
        if self.suite:
            suites.append(self.suite + (f".({self.tests})" if self.tests else ""))
        return suites


def fail(message: str) -> None:
    sys.exit(f"mutants: error: {message}")


def say(message: str) -> None:
    print(f"mutants: {message}", flush=True)


def read_mutants() -> list[Mutant]:
    mutants = [Mutant(**each) for each in tomllib.loads((root / "test/mutants/mutants.toml").read_text())["mutant"]]
    if len({each.name for each in mutants}) < len(mutants):
        fail("two mutants have the same name")
    for each in mutants:
        if "MUTANT" not in each.replace:
            fail(f"{each.name}: the replacement lacks MUTANT")
    return mutants


def put_in(text: str, mutants: list[Mutant]) -> str:
    """Returns the text of a file with its mutants."""
    places = []
    for each in mutants:
        if text.count(each.find) != 1:
            fail(f"{each.name}: {each.file} has {text.count(each.find)} places with: {each.find}")
        places.append((text.index(each.find), each))
    places.sort(key=lambda place: place[0])
    parts, end = [], 0
    for start, each in places:
        if start < end:
            fail(f"{each.name}: the place of another mutant in {each.file} is the same")
        parts += [text[end:start], each.replace.replace("MUTANT", f'is_mutant("{each.name}")')]
        end = start + len(each.find)
    return "".join([header, *parts, text[end:]])


def make_tree(mutants: list[Mutant]) -> str:
    """Copies the sources with all mutants. A file that has not changed keeps its time, so that it is not compiled again.
    Returns a hash of the copy."""
    list_files = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(list_files, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    digest = hashlib.sha256()
    for name in sorted(filter(None, names)):
        source, target = root / name, tree / name
        if not source.is_file():
            continue
        here = [each for each in mutants if each.file == name]
        content = put_in(source.read_text(), here).encode() if here else source.read_bytes()
        digest.update(name.encode() + b"\0" + content)
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            shutil.copymode(source, target)
    missing = {each.file for each in mutants} - set(names)
    if missing:
        fail(f"there is no file {', '.join(sorted(missing))}")
    for path in list(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    return digest.hexdigest()


def program_of(suite: str) -> str:
    return "colock_test_" + suite.split(".")[0]


def build(preset: str, suites: list[str]) -> None:
    subprocess.run([tree / "scripts/build.sh", preset, *dict.fromkeys(program_of(each) for each in suites)], check=True)


def run_suite(suite: str, mutant: str, options: argparse.Namespace) -> tuple[str, float]:
    """Runs a suite with a mutant within the limit, or without a mutant. Returns the test that failed, or nothing, and the seconds until then."""
    folder = tree / "build" / options.preset
    if suite == "simulation":
        command = [folder / "test/simulation" / program_of(suite), "--seed", "1", "--seconds", "60"]
    else:
        command = ["ctest", "--test-dir", folder, "--parallel", str(options.jobs), "--stop-on-failure",
                   "--no-tests=error", "--tests-regex", f"^{suite}$" if "." in suite else f"^{suite}[.]"]
    environment = {name: value for name, value in os.environ.items() if name != "COLOCK_MUTANT"}
    if mutant:
        environment["COLOCK_MUTANT"] = mutant
    start = time.monotonic()
    # The tests start processes of their own, which have to end with the suite.
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    end_all = functools.partial(os.killpg, running.pid, signal.SIGKILL)
    limit = threading.Timer(options.timeout if mutant else 3600, end_all)
    limit.start()
    output, failed = [], ""
    for line in running.stdout:
        output.append(line)
        if found := failure.search(line):
            # ctest would wait for the tests that run at the same time.
            failed = found[1] or found[2]
            end_all()
            break
    seconds = time.monotonic() - start
    limit.cancel()
    running.stdout.close()
    status = running.wait()
    (work / "log").mkdir(exist_ok=True)
    (work / "log" / f"{mutant or 'none'}.txt").write_text("".join(output))
    if not failed and status != 0:
        failed = "limit" if status == -signal.SIGKILL else "unknown"
    return failed, seconds


def check_without_mutant(suites: list[str], known: dict, options: argparse.Namespace) -> None:
    for suite in suites:
        if suite in known:
            continue
        failed, seconds = run_suite(suite, "", options)
        if failed:
            fail(f"without a mutant, {suite} fails: {failed}; see {work / 'log/none.txt'}")
        say(f"without a mutant, {suite} passes in {seconds:.0f} s")
        known[suite] = seconds


def run_mutant(mutant: Mutant, usual: dict, options: argparse.Namespace) -> dict:
    total = 0.0
    for suite in mutant.suites():
        failed, seconds = run_suite(suite, mutant.name, options)
        total += seconds
        # A suite that usually ends in a third of the limit, and now does not end, has noticed the mutant.
        if failed == "limit" and usual[suite] * 3 > options.timeout:
            continue
        if failed:
            return {"suite": suite.split(".")[0], "test": failed, "seconds": round(total, 1)}
    return {"suite": "", "test": "", "seconds": round(total, 1)}


def print_table(mutants: list[Mutant], results: dict) -> None:
    print("\n| mutant | file | noticed by | seconds |\n|---|---|---|---:|")
    for each in mutants:
        if result := results.get(each.name):
            how = f"{result['suite']}: `{result['test']}`" if result["suite"] else "equivalent" if each.equivalent else "-"
            print(f"| `{each.name}` | `{each.file.removeprefix('src/')}` | {how} | {result['seconds']:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants to run (default: all)")
    parser.add_argument("--list", action="store_true", help="print the mutants and what they do")
    parser.add_argument("--table", action="store_true", help="print the results of earlier runs")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="tests that run at the same time")
    parser.add_argument("--timeout", type=float, default=180, help="seconds of one suite with one mutant")
    parser.add_argument("--preset", default="debug", help="the build (default: debug, which has assertions)")
    options = parser.parse_args()

    mutants = read_mutants()
    results = json.loads(results_file.read_text()) if results_file.is_file() else {}
    if options.list:
        for each in mutants:
            print(f"{each.name}: {each.does}")
        return
    if options.table:
        return print_table(mutants, results["mutants"])
    unknown = set(options.names) - {each.name for each in mutants}
    if unknown:
        fail(f"unknown: {', '.join(sorted(unknown))}; see --list")
    selected = [each for each in mutants if not options.names or each.name in options.names]

    state = make_tree(mutants)
    if results.get("tree") != state:
        results = {"tree": state, "usual": {}, "mutants": results.get("mutants", {})}
    needed = list(dict.fromkeys(suite for each in selected for suite in each.suites()))
    build(options.preset, needed)
    check_without_mutant(needed, results["usual"], options)
    missed = []
    for number, each in enumerate(selected, 1):
        result = run_mutant(each, results["usual"], options)
        results["mutants"][each.name] = result
        results_file.write_text(json.dumps(results, indent=1))
        how = f"{result['suite']}: {result['test']}" if result["suite"] else "not noticed"
        say(f"{number}/{len(selected)} {each.name}: {how} ({result['seconds']:.0f} s)")
        if bool(result["suite"]) == bool(each.equivalent):
            missed.append(each.name + (", which is said to be equivalent, was noticed" if each.equivalent else ""))
    print_table(selected, results["mutants"])
    if missed:
        fail("not as expected: " + "; ".join(missed))


if __name__ == "__main__":
    main()
