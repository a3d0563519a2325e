#!/usr/bin/env python3
"""Compiles all mutants of mutants.toml into a copy of the sources, and checks that the tests notice each of them.

The tests run once without a mutant, where they have to pass, and then with each mutant, until a test fails twice. An
environment variable selects the mutant, so that the copy is compiled only once. Exits with 1 if a mutant without the
field `equivalent` is not noticed.
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
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent.parent
work = root / "build" / "mutants"
tree = work / "tree"
results_file = work / "results.json"
# The lines of ctest and of the simulator that report a failure.
failure = re.compile(r"Test\s+#\d+: (\S+) \.*\s*\**(?:Failed|Timeout|Exception|Subprocess|Not Run)|^(seed \d+: .*)$")
# The servers of the suites that need one.
servers = {"redis": "redis", "redis_cluster": "redis", "zookeeper": "zookeeper", "mongo": "mongodb"}
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
    if missing := {each.file for each in mutants} - set(names):
        fail(f"there is no file {', '.join(sorted(missing))}")
    for path in list(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    return digest.hexdigest()


def build(preset: str, suites: list[str]) -> None:
    programs = dict.fromkeys("colock_test_" + each.split(".")[0] for each in suites)
    subprocess.run([tree / "scripts/build.sh", preset, *programs], check=True)


def run_suite(suite: str, mutant: str, options: argparse.Namespace, flaky: list[str]) -> str:
    """Runs a suite, or one test, with a mutant within the limit, or without a mutant. Leaves out the flaky tests.
    Returns the test that failed, or nothing."""
    folder = tree / "build" / options.preset
    if suite == "simulation":
        command = [folder / "test/simulation/colock_test_simulation", "--seed", "1", "--seconds", "60"]
    else:
        command = ["ctest", "--test-dir", folder, "--parallel", str(options.jobs), "--stop-on-failure",
                   "--tests-regex", f"^{suite}$" if "." in suite else f"^{suite}[.]",
                   *(["--exclude-regex", f"^({'|'.join(flaky)})$"] if flaky else ["--no-tests=error"])]
    # A mutant may damage a server, so each run has servers of its own.
    if server := servers.get(suite.split(".")[0]):
        command = [root / "scripts/servers.sh", "run", server, "--", *command]
    environment = {name: value for name, value in os.environ.items() if name != "COLOCK_MUTANT"}
    if mutant:
        environment["COLOCK_MUTANT"] = mutant
    output, failed = [], ""
    # Tests and servers that are killed leave files behind.
    with tempfile.TemporaryDirectory(prefix="colock-", ignore_cleanup_errors=True) as environment["TMPDIR"]:
        # The tests start processes of their own, which have to end with the suite.
        running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", start_new_session=True)
        end_all = functools.partial(os.killpg, running.pid, signal.SIGKILL)
        limit = threading.Timer(options.timeout if mutant else 3600, end_all)
        limit.start()
        try:
            for line in running.stdout:
                output.append(line)
                if found := failure.search(line):
                    failed = found[1] or found[2]
                    break
        finally:
            limit.cancel()
            # ctest would wait for the tests that run at the same time.
            if failed or sys.exc_info()[0]:
                end_all()
        status = running.wait()
    (work / "log").mkdir(exist_ok=True)
    (work / "log" / f"{mutant or 'none'}.txt").write_text("".join(output))
    if not failed and status != 0:
        failed = "limit" if status == -signal.SIGKILL else "unknown"
    return failed


def find_failure(suite: str, mutant: str, usual: float, options: argparse.Namespace) -> tuple[str, float]:
    """Runs a suite until a test fails, and then this test alone. Goes on without the test if it passes. Returns the
    test that has failed twice, or nothing, and the time at which it failed first."""
    flaky: list[str] = []
    while True:
        failed = run_suite(suite, mutant, options, flaky)
        now = time.monotonic()
        is_test = failed not in ("limit", "unknown")
        # A suite that usually takes longer than a third of the limit may reach the limit without a fault.
        if not failed or (not is_test and usual * 3 > options.timeout) or failed in flaky:
            return "", now
        if run_suite(failed if is_test and suite != "simulation" else suite, mutant, options, []) == failed:
            return failed, now
        say(f"{mutant or 'without a mutant'}: {failed} of {suite} failed, but not when it was repeated")
        flaky.append(failed)


def check_without_mutant(suites: list[str], known: dict, options: argparse.Namespace) -> None:
    for suite in [each for each in suites if each not in known]:
        start = time.monotonic()
        failed, end = find_failure(suite, "", 0, options)
        if failed:
            fail(f"without a mutant, {suite} fails: {failed}; see {work / 'log/none.txt'}")
        known[suite] = round(end - start, 1)
        say(f"without a mutant, {suite} passes in {known[suite]:.0f} s")


def run_mutant(mutant: Mutant, usual: dict, options: argparse.Namespace) -> dict:
    start, failed = time.monotonic(), ""
    for suite in mutant.suites():
        failed, end = find_failure(suite, mutant.name, usual[suite], options)
        if failed:
            break
    return {"suite": suite.split(".")[0] if failed else "", "test": failed, "seconds": round(end - start, 1)}


def print_table(mutants: list[Mutant], results: dict) -> None:
    times: dict[str, list[float]] = {}
    print("\n| mutant | file | noticed by | seconds |\n|---|---|---|---:|")
    for each in mutants:
        if result := results.get(each.name):
            how = f"{result['suite']}: `{result['test']}`" if result["suite"] else "equivalent" if each.equivalent else "-"
            print(f"| `{each.name}` | `{each.file.removeprefix('src/')}` | {how} | {result['seconds']:.0f} |")
            times.setdefault(result["suite"] or "none", []).append(result["seconds"])
    print("\n| noticed by | mutants | median seconds | most seconds |\n|---|---:|---:|---:|")
    for suite, seconds in times.items():
        print(f"| {suite} | {len(seconds)} | {statistics.median(seconds):.0f} | {max(seconds):.0f} |")


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
        return print("\n".join(f"{each.name}: {each.does}" for each in mutants))
    if options.table:
        if not results.get("mutants"):
            fail(f"there are no results of earlier runs in {results_file}")
        return print_table(mutants, results["mutants"])
    if unknown := set(options.names) - {each.name for each in mutants}:
        fail(f"unknown: {', '.join(sorted(unknown))}; see --list")
    selected = [each for each in mutants if not options.names or each.name in options.names]

    state = make_tree(mutants)
    if results.get("tree") != state:
        results = {"tree": state, "usual": {}, "mutants": results.get("mutants", {})}
    needed = list(dict.fromkeys(suite for each in selected for suite in each.suites()))
    build(options.preset, needed)
    usual = results["usual"].setdefault(f"{options.preset}, {options.jobs} jobs", {})
    check_without_mutant(needed, usual, options)
    results_file.write_text(json.dumps(results, indent=1))
    missed = []
    for number, each in enumerate(selected, 1):
        result = run_mutant(each, usual, options)
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
