#!/usr/bin/env python3
"""Tests the program colock on a real server.

    test.py COLOCK redis|quorum|zookeeper|mongodb [CASE]...

scripts/servers.sh has started the server, for this test alone, because some cases stop it.
"""

import concurrent.futures
import datetime
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

# Script of a child that prints `ready` and then waits for signals.
READY = "echo ready; while :; do sleep 0.05; done"
DEFAULT_TIMEOUT_S = 30


class CheckFailed(Exception):
    """A promise of the manual does not hold."""

    def __str__(self):
        return " ".join(str(each) for each in self.args)


CASES = []
CASES_THAT_STOP_THE_SERVER = []


def case(stops_server=False):
    """Registers a function as a test case."""
    def add(function):
        (CASES_THAT_STOP_THE_SERVER if stops_server else CASES).append(function)
        return function

    return add


def check(condition, *what):
    """Fails with the line of the caller, unless the condition holds. `what` is the expectation, or values to show."""
    if not condition:
        caller = traceback.extract_stack(limit=2)[0]
        raise CheckFailed(f"expected in line {caller.lineno}:", caller.line, *what)


def wait_for(condition, what, limit=DEFAULT_TIMEOUT_S):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise CheckFailed(f"expected within {limit} s: {what}")


class Process:
    """A process, usually of colock, whose output can be awaited."""

    started = []

    def __init__(self, words, environment, **options):
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        options = {"stdin": subprocess.DEVNULL, "stdout": self.out, "stderr": self.err} | options
        self.process = subprocess.Popen(words, env=environment, text=True, **options)
        self.pid = self.process.pid
        Process.started.append(self.process)

    def text(self, file):
        # A read by position, because the child writes at the position of the shared descriptor.
        return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")

    @property
    def stdout(self):
        return self.text(self.out)

    @property
    def stderr(self):
        return self.text(self.err)

    def wait_for(self, pattern, limit=DEFAULT_TIMEOUT_S):
        def find():
            if self.process.poll() is not None and not re.search(pattern, self.stdout):
                raise CheckFailed(f"ended with {self.process.returncode} before /{pattern}/:", self.stdout, self.stderr)
            return re.search(pattern, self.stdout)

        return wait_for(find, f"/{pattern}/ in {self.stdout!r} {self.stderr!r}", limit)

    def end(self, limit=DEFAULT_TIMEOUT_S):
        """Returns the exit code."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise CheckFailed(f"did not end in {limit} s: {self.process.args}", self.stdout, self.stderr) from None
        return code if code >= 0 else 128 - code

    def exits_with(self, expected, limit=DEFAULT_TIMEOUT_S):
        code = self.end(limit)
        check(code == expected, f"exit code {expected} of {self.process.args}, not {code}", self.stdout, self.stderr)
        if expected in (64, 69, 75, 77, 78, 79, 126, 127):
            lines = [each for each in self.stderr.splitlines() if each.startswith("colock")]
            check(len(lines) == 1, "one line on stderr", self.stderr)
        return self

    def terminate(self, expected=128 + signal.SIGTERM):
        """Sends SIGTERM, and checks the exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.exits_with(expected)


class Backend:
    def __init__(self, colock, name):
        self.colock = colock
        self.name = name
        variable = f"COLOCK_TEST_{'REDIS' if name == 'quorum' else name.upper()}"
        self.url = os.environ[variable]
        self.host = self.url.split("//")[1]
        self.servers = [int(os.environ[variable + "_ID"])]
        if name == "quorum":
            others = [f"{variable}_{number}" for number in (2, 3)]
            self.url = "redis+quorum://" + ",".join([self.host] + [os.environ[each].split("//")[1] for each in others])
            self.servers += [int(os.environ[each + "_ID"]) for each in others]
        if name == "zookeeper":
            # The servers of the tests have short ticks, see scripts/servers.sh.
            self.url += "?server_tick=500ms"
        # The shortest ttl for a grace of 500 ms. ZooKeeper needs more, because its lease is shorter than the session that
        # is requested.
        self.ttl = 4 if name == "zookeeper" else 3
        self.short = ["--ttl", f"{self.ttl}s", "--grace", "500ms"]
        self.fences = name != "quorum"
        self.shares = name != "quorum"
        self.tickets = name != "zookeeper"

    def environment(self, **variables):
        return os.environ | {"COLOCK_BACKEND": self.url} | variables

    def start(self, *words, environment=None, **options):
        return Process([self.colock, *words], environment or self.environment(), **options)

    def run(self, key, *words, **options):
        return self.start("run", key, *self.short, *words, **options)

    def lead(self, key, *words, **options):
        return self.start("lead", key, *self.short, *words, **options)

    def under_terminal(self, line, **options):
        """Runs a line of the shell, in which $colock is the program, under a pseudo-terminal."""
        line = line.replace("$colock", shlex.quote(self.colock))
        return Process(["script", "-qec", line, "/dev/null"], self.environment(), **options)

    def is_free(self, key):
        """Returns whether one attempt gets the lock."""
        return self.run(key, "--no-wait", "--", "true").end() == 0

    def start_holder(self, key, *words, script=READY):
        """Starts a run whose child is ready."""
        run = self.run(key, *words, "-c", script)
        run.wait_for("ready")
        return run


def process_state(pid):
    """Returns the letter of the state; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return ""


def is_gone(pid):
    return process_state(pid) in ("", "Z")


def redis_command(backend, *words):
    with socket.create_connection(backend.host.split(":")) as connection:
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(4096).decode()


# --- exit codes of docs/command.md; 1 is in `answer_to_break_is_obeyed`, and 128 + n in `signal_ends_the_wait`, too ---


@case()
def exit_code_of_child_is_passed_on(backend):
    backend.run("code", "--", "true").exits_with(0)
    backend.run("code", "--", "sh", "-c", "exit 3").exits_with(3)
    backend.run("code", "-c", "exit 255").exits_with(255)


@case()
def signal_of_child_exits_with_128_plus_n(backend):
    backend.run("signal", "-c", "kill -9 $$").exits_with(137)
    backend.run("signal", "-c", "kill -TERM $$").exits_with(143)


@case()
def command_that_cannot_run_exits_with_126_or_127(backend):
    backend.run("exec", "--", "/etc/passwd").exits_with(126)
    backend.run("exec", "--", "/nonexistent").exits_with(127)
    backend.run("exec", "--", "no-such-command-of-colock").exits_with(127)
    check(backend.is_free("exec"), "the lock is released")


@case()
def wrong_usage_exits_with_64(backend):
    for words in (
        ["run", "k", "--ttl", "0", "--", "true"],
        ["run", "k", "--ttl", "30", "--", "true"],
        ["run", "k", "--ttl", "10s", "--", "true"],  # too short for the default grace
        ["run", "k", "--grace", "10s", "--", "true"],
        ["run", "k", "--max-hold", "5s", "--", "true"],
        ["run", "k", "--unknown", "--", "true"],
        ["run", "k"],
        ["run", "k", "-c", "true", "--", "true"],
        ["run", "k", "true"],
        ["run", "k", "--key", "k", "--", "true"],
        ["run", "--", "true"],
        ["run", "k", "--shared", "--max-holders", "2", "--", "true"],
        ["run", "k", "--max-holders", "0", "--", "true"],
        ["run", "k", "--max-holders=-1", "--", "true"],
        ["run", "k", "-E", "256", "--", "true"],  # the exit code of a process is its remainder, 0
        ["run", "k", "--conflict-exit-code=-1", "--", "true"],
        ["run", "", "--", "true"],
        ["lead", "--", "true"],
        ["lead", "k", "l", "--", "true"],
        ["lead", "k"],
        ["lead", "k", "--ttl", "0", "--", "true"],
        ["lead", "k", "--no-wait", "--", "true"],
        ["run", "k" * 600, "--", "true"],
        ["ls", "a", "b"],
        ["purge", "--limit", "0"],
        ["purge", "--limit=-1"],
        ["break", "k"],
        ["break"],
        ["detach", "k", "--ttl", "3s"],
        ["adopt", "--ticket", "/nonexistent", "--", "true"],
        ["unknown"],
        [],
    ):
        backend.start(*words).exits_with(64)
    backend.start("run", "k", "--", "true", environment=backend.environment(COLOCK_BACKEND="")).exits_with(64)
    backend.start("run", "k", "--backend", "Memory:", "--", "true").exits_with(64)
    backend.start("run", "k", "--backend", "http://127.0.0.1", "--", "true").exits_with(64)


@case()
def server_that_is_down_exits_with_69(backend):
    url = backend.url.split("//")[0] + "//127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
    if backend.name != "quorum":
        url = url.split(",")[0]
    backend.run("down", "--no-wait", "--backend", url, "--", "true").exits_with(69)
    backend.run("down", "--timeout", "1s", "--backend", url, "--", "true").exits_with(69)


@case()
def busy_lock_exits_with_75(backend):
    holder = backend.start_holder("busy")
    backend.run("busy", "--no-wait", "--", "true").exits_with(75)
    backend.run("busy", "--timeout", "0", "--", "true").exits_with(75)
    backend.run("busy", "--timeout", "3s", "--", "true").exits_with(75)
    backend.run("busy", "-n", "-E", "3", "--", "true").exits_with(3)
    backend.run("busy", "-n", "-E", "0", "--", "true").exits_with(0)
    holder.terminate()


@case()
def denied_access_exits_with_77(backend):
    if backend.name in ("redis", "quorum"):
        url = backend.url.replace("//", "//user:wrong-secret@")
        run = backend.run("denied", "--backend", url, "--", "true")
    elif backend.name == "zookeeper":
        private = f"zookeeper://first:secret@{backend.host}/private?server_tick=500ms"
        backend.run("denied", "--backend", private, "--", "true").exits_with(0)
        run = backend.run("denied", "--backend", private.replace("first:secret", "second:wrong-secret"), "--", "true")
    else:
        url = backend.url.replace("//", "//user:wrong-secret@")
        run = backend.run("denied", "--backend", url, "--", "true")
    check(run.end() == 77, "exit code 77, not", run.end(), run.stderr)
    check("wrong-secret" not in run.stderr, run.stderr)
    check("warning: other users can see the password in --backend" in run.stderr, run.stderr)


@case()
def misconfigured_server_exits_with_78(backend):
    if backend.name in ("redis", "quorum"):
        url = backend.url + "/99"  # the server has 16 databases
    elif backend.name == "zookeeper":
        # A node that belongs to a session cannot have children.
        holder = backend.start_holder("misconfigured")
        with socket.create_connection(backend.host.split(":")) as connection:
            connection.sendall(b"dump")
            node = re.search(r"/colock/\w+/misconfigured/\S+", connection.makefile().read())[0]
        url = f"zookeeper://{backend.host}{node}?server_tick=500ms"
    else:
        url = backend.url + "/?replicaSet=other"
    backend.run("misconfigured", "--backend", url, "--", "true").exits_with(78)
    if backend.name == "zookeeper":
        holder.terminate()


@case()
def broken_lock_ends_child_and_exits_with_79(backend):
    holder = backend.start_holder("broken")
    removed = backend.start("break", "broken", "--yes", "--json").exits_with(0)
    check(json.loads(removed.stdout)["key"] == "broken", removed.stdout)
    holder.exits_with(79)
    check("broken" in holder.stderr, holder.stderr)
    check(backend.start("break", "broken", "--yes").exits_with(0).stdout == "", "nothing to break")


@case()
def max_hold_ends_child_and_exits_with_79(backend):
    run = backend.start_holder("max_hold", "--max-hold", "2s")
    start = time.monotonic()
    run.exits_with(79)
    check(time.monotonic() - start < 2, "the child was ended before the end of --max-hold")
    check(backend.is_free("max_hold"), "the lock is released")


# --- the child ------------------------------------------------------------------------------------------------------


@case()
def four_runs_exclude_each_other(backend):
    with tempfile.TemporaryDirectory() as folder:
        script = f"mkdir {folder}/held || exit 9; sleep 0.05; rmdir {folder}/held; echo done"
        runs = [backend.run("at_once", "-c", script) for _ in range(4)]
        for each in runs:
            each.exits_with(0)


@case()
def several_keys_are_locked_all_or_none(backend):
    holder = backend.start_holder("several_a", "--key", "several_b", script='echo "$COLOCK_KEY"; ' + READY)
    check(holder.stdout.startswith("several_a\nseveral_b\n"), holder.stdout)
    for key in ("several_a", "several_b"):
        check(not backend.is_free(key), key, "is held")
    backend.run("several_c", "--key", "several_b", "--no-wait", "--", "true").exits_with(75)
    check(backend.is_free("several_c"), "all or none")
    holder.terminate()


@case()
def shared_holders_exclude_others_and_obey_max_holders(backend):
    if not backend.shares:
        backend.run("shared", "--shared", "--", "true").exits_with(64)
        return
    holders = [backend.start_holder("shared", "--shared"), backend.start_holder("shared", "--max-holders", "2")]
    backend.run("shared", "--max-holders", "2", "-n", "--", "true").exits_with(75)
    backend.run("shared", "-n", "--", "true").exits_with(75)
    for each in holders:
        each.terminate()


@case()
def child_gets_key_and_growing_fence(backend):
    first = backend.run("fence", "-c", 'echo "$COLOCK_KEY $COLOCK_FENCE"').exits_with(0).stdout.split()
    check(first[0] == "fence", first)
    second = backend.run("fence", "-c", 'echo "$COLOCK_FENCE"').exits_with(0).stdout.strip()
    if backend.fences:
        check(int(second) > int(first[1]), first, second)
    else:
        check(len(first) == 1 and second == "", first, second)


@case()
def child_gets_inherited_descriptors_only(backend):
    with open(os.devnull, encoding="utf-8") as file:
        script = f"ls -l /proc/self/fd; [ -e /proc/self/fd/{file.fileno()} ] && echo passed"
        listing = backend.run("descriptors", "-c", script, pass_fds=[file.fileno()]).exits_with(0).stdout
    check("passed" in listing, listing)
    check(not re.search(r"socket:|anon_inode|pipe:", listing), "no descriptors of colock", listing)


@case()
def closed_stdin_stays_closed_in_child(backend):
    line = f"exec {shlex.quote(backend.colock)} run closed {' '.join(backend.short)} -c '[ -e /proc/self/fd/0 ] || echo closed' <&-"
    run = Process(["bash", "-c", line], backend.environment()).exits_with(0)
    check(run.stdout == "closed\n", run.stdout)


@case()
def broken_pipe_does_not_end_run(backend):
    reader, writer = os.pipe()
    os.close(reader)
    # Both the warnings of colock and the output of the child go nowhere.
    backend.run("pipe", "--verbose", "--", "sh", "-c", "exit 3", stderr=writer, stdout=writer).exits_with(3)
    check(backend.is_free("pipe"), "the lock is released")
    holder = backend.start_holder("pipe")
    check(backend.start("ls", stdout=writer).end() == 128 + signal.SIGPIPE, "ls ends as others do")
    holder.terminate()
    os.close(writer)


@case()
def daemon_of_child_does_not_keep_lock(backend):
    run = backend.run("daemon", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!").exits_with(0, limit=5)
    daemon = int(run.stdout)
    check(not is_gone(daemon), "the daemon lives")
    check(backend.is_free("daemon"), "the lock ends with the child")
    os.kill(daemon, signal.SIGKILL)


# --- signals --------------------------------------------------------------------------------------------------------


@case()
def signals_are_forwarded_to_child(backend):
    script = "trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo winch' WINCH; trap 'exit 7' TERM; " + READY
    run = backend.start_holder("forward", script=script)
    for each, word in ((signal.SIGUSR1, "usr1"), (signal.SIGUSR2, "usr2"), (signal.SIGWINCH, "winch")):
        os.kill(run.pid, each)
        run.wait_for(word)
    run.terminate(7)
    for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        run = backend.start_holder("forward", script="ulimit -c 0; " + READY)
        os.kill(run.pid, each)
        run.exits_with(128 + each)
    check(backend.is_free("forward"), "the lock is released")


@case()
def child_that_ignores_sigterm_is_killed_after_grace(backend):
    run = backend.start_holder("ignores", script="trap '' TERM; " + READY)
    start = time.monotonic()
    os.kill(run.pid, signal.SIGTERM)
    run.exits_with(137, limit=5)
    check(time.monotonic() - start >= 0.5, "the child is killed after the grace")
    check(backend.is_free("ignores"), "the lock is released")


@case()
def lock_is_held_until_the_group_is_empty(backend):
    script = "(trap '' TERM; echo $BASHPID; exec sleep 60) & trap 'exit 5' TERM; echo ready; wait"
    run = backend.run("group", "--", "bash", "-c", script)
    run.wait_for("ready")
    grandchild = int(run.wait_for(r"(?m)^(\d+)$")[1])
    start = time.monotonic()
    os.kill(run.pid, signal.SIGTERM)
    # `is_free` first: the grandchild may end, and the lock may be released, while `is_free` runs.
    check(not backend.is_free("group") or is_gone(grandchild), "the lock is held while the group has members")
    run.exits_with(5, limit=5)
    check(time.monotonic() - start >= 0.5, "the grandchild gets the grace")
    check(is_gone(grandchild), "the grandchild was killed")
    check(backend.is_free("group"), "the lock is released")


@case()
def dead_member_of_group_does_not_keep_lock(backend):
    """A process that its parent never collects stays in the group, but does not keep the lock."""
    script = '''
import os, sys, time
if os.fork() == 0:
    member = os.fork()
    if member == 0:
        time.sleep(60)
    os.setsid()
    print("daemon", os.getpid(), "member", member, flush=True)
time.sleep(60)
'''
    run = backend.run("dead_member", "--", sys.executable, "-c", script)
    daemon, member = (int(each) for each in run.wait_for(r"daemon (\d+) member (\d+)").groups())
    run.terminate()
    check(process_state(member) == "Z" and not is_gone(daemon), "the daemon has not collected the process")
    check(backend.is_free("dead_member"), "the lock is released")
    os.kill(daemon, signal.SIGKILL)


@case()
def child_in_another_group_gets_sigterm(backend):
    script = "import os, time; os.setpgid(0, os.getpgid(os.getppid())); print('ready', flush=True); time.sleep(60)"
    run = backend.run("other_group", "--", sys.executable, "-c", script)
    run.wait_for("ready")
    run.terminate()


@case()
def stopped_child_keeps_lock_until_it_continues_or_ends(backend):
    # A shell that has just called vfork would not be in the state T.
    run = backend.start_holder("stopped", script="echo $$; echo ready; exec sleep 60")
    child = int(run.wait_for(r"(?m)^(\d+)$")[1])
    os.kill(run.pid, signal.SIGTSTP)
    wait_for(lambda: process_state(child) == "T", "the child is stopped")
    # The lock is renewed meanwhile: it is held after its ttl.
    end = time.monotonic() + backend.ttl + 0.5
    wait_for(lambda: time.monotonic() > end, "the ttl has passed")
    check(process_state(run.pid) in "SR", "colock is not stopped")
    check(not backend.is_free("stopped"), "the lock is renewed")
    os.kill(run.pid, signal.SIGCONT)
    wait_for(lambda: process_state(child) != "T", "the child continues")
    os.kill(run.pid, signal.SIGTSTP)
    wait_for(lambda: process_state(child) == "T", "the child is stopped again")
    run.terminate()


@case()
def stopped_grandchild_can_react_to_sigterm(backend):
    """Only a stop of the child itself is reported to colock."""
    member = "(trap 'echo reacted; exit' TERM; sh -c 'echo $PPID'; while true; do sleep 0.05; done) &"
    run = backend.start_holder("grandchild", script=f"{member} {READY}")
    grandchild = int(run.wait_for(r"(?m)^(\d+)$")[1])
    os.kill(grandchild, signal.SIGSTOP)
    wait_for(lambda: process_state(grandchild) == "T", "the grandchild is stopped")
    run.terminate()
    check("reacted" in run.stdout, run.stdout)


@case()
def paused_colock_kills_child_when_it_continues(backend):
    """Nothing can end the child of a stopped colock in time, but it ends the child as soon as it continues."""
    run = backend.start_holder("paused", script="trap 'echo term' TERM; echo $$; " + READY)
    child = int(run.wait_for(r"(?m)^(\d+)$")[1])
    os.kill(run.pid, signal.SIGSTOP)
    backend.run("paused", "--timeout", "20s", "--", "true").exits_with(0)
    os.kill(run.pid, signal.SIGCONT)
    wait_for(lambda: is_gone(child), "the child is killed without a grace", limit=0.4)
    run.exits_with(79)


@case()
def signal_ends_the_wait(backend):
    holder = backend.start_holder("waiting")
    for each in (signal.SIGTERM, signal.SIGINT):
        waiter = backend.run("waiting", "--verbose", "--", "true")
        wait_for(lambda: "waiting" in waiter.stderr, "the second run waits")
        os.kill(waiter.pid, each)
        check(waiter.end(limit=5) == 128 + each, waiter.stderr)
    holder.terminate()
    check(backend.is_free("waiting"), "nothing is left behind")


@case()
def killed_colock_ends_child_and_lease(backend):
    run = backend.start_holder("killed", script="echo $$; " + READY)
    child = int(run.wait_for(r"(?m)^(\d+)$")[1])
    start = time.monotonic()
    os.kill(run.pid, signal.SIGKILL)
    check(run.end() == 137)
    wait_for(lambda: is_gone(child), "the child is killed", limit=1)
    check(not backend.is_free("killed"), "the lease still lasts")
    backend.run("killed", "--timeout", "20s", "--", "true").exits_with(0)
    # A waiter may learn of an expiry late, because nothing is sent for it.
    check(time.monotonic() - start < backend.ttl + 5, f"the lock is free after its ttl, not after {time.monotonic() - start} s")


@case(stops_server=True)
def server_that_stops_ends_child_before_lease(backend):
    ttl, grace = 6, 1
    with tempfile.TemporaryDirectory() as folder:
        clock = f"{folder}/clock"
        script = f"trap 'date +%s.%N >{folder}/term' TERM; echo ready; while :; do date +%s.%N >>{clock}; done"
        run = backend.start(
            "run", "stops", "--ttl", f"{ttl}s", "--grace", f"{grace}s", "--verbose", "-c", script)
        run.wait_for("ready")
        wait_for(lambda: "renewed" in run.stderr, "the lease is renewed once")
        for each in backend.servers:
            os.kill(each, signal.SIGSTOP)
        stopped = time.time()
        try:
            code = run.end(limit=ttl + 12)
            with open(clock, encoding="utf-8") as file:
                last = float(file.read().splitlines()[-1])
            with open(f"{folder}/term", encoding="utf-8") as file:
                terminated = float(file.read())
        finally:
            for each in backend.servers:
                os.kill(each, signal.SIGCONT)
        check(code == 79, "exit code 79, not", code, run.stderr)
        renewals = re.findall(r"(\S+Z) debug renewed .*valid_ms=(\d+)", run.stderr)
        when, valid = renewals[-1]
        lease_end = datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp() + int(valid) / 1000
        print(f"{backend.name}: TERM {lease_end - terminated:.2f} s, last sign of life {lease_end - last:.2f} s before "
              f"the end of the lease; the server had been stopped for {last - stopped:.2f} s")
        check(last < stopped + ttl, "the child has ended before the lease of the server")
        if backend.name != "zookeeper":  # whose lease ends with the session
            check(terminated < lease_end - grace - 0.3, f"SIGTERM at grace + 0.5 s before the end of the lease, not {lease_end - terminated} s")
            check(last < lease_end - 0.2, f"SIGKILL at 0.5 s before the end of the lease, not {lease_end - last} s")
    wait_for(lambda: backend.is_free("stops"), "the server works again")


@case(stops_server=True)
def server_that_stops_before_release_keeps_exit_code(backend):
    """The exit code is that of the child, and several keys do not wait for one another."""
    keys = ["hangs", "--key", "hangs_b", "--key", "hangs_c", "--key", "hangs_d", "--grace", "1s"]
    with tempfile.TemporaryDirectory() as folder:
        run = backend.start("run", *keys, "-c", f"echo ready; while ! [ -e {folder}/go ]; do sleep 0.05; done; exit 5")
        run.wait_for("ready")
        for each in backend.servers:
            os.kill(each, signal.SIGSTOP)
        try:
            open(f"{folder}/go", "w", encoding="utf-8").close()
            run.exits_with(5, limit=14)
        finally:
            for each in backend.servers:
                os.kill(each, signal.SIGCONT)


# --- leaders --------------------------------------------------------------------------------------------------------


@case()
def next_leader_has_greater_term(backend):
    script = 'echo "leads $COLOCK_KEY $COLOCK_FENCE"; ' + READY
    first = backend.lead("leader", "-c", script)
    term = first.wait_for(r"leads leader (\d*)\n")[1]
    second = backend.lead("leader", "-v", "-c", script)
    wait_for(lambda: "waiting" in second.stderr, "the second process waits")
    check("leads" not in second.stdout, "one leader")
    first.terminate()
    later = second.wait_for(r"leads leader (\d*)\n")[1]
    check(int(later) > int(term) if backend.fences else later == term == "", term, later)
    os.kill(second.pid, signal.SIGKILL)
    third = backend.lead("leader", "-c", script)
    third.wait_for("leads")
    third.terminate()
    check(backend.is_free("leader"), "the leader has resigned")


@case()
def leader_runs_command_again_in_greater_term(backend):
    """The command is started again in a greater term: at once after a success, else after 1 s."""
    run = backend.lead("again", "-c", 'echo "term $(date +%s.%N) $COLOCK_FENCE"; sleep 1.1')
    terms = wait_for(lambda: (found := re.findall(r"term (\S+) (\d*)\n", run.stdout)) and len(found) > 2 and found,
                     "three terms")
    check(not backend.fences or int(terms[0][1]) < int(terms[1][1]) < int(terms[2][1]), terms)
    check(run.stderr == "", run.stderr)
    os.kill(run.pid, signal.SIGTERM)
    check(run.end() in (143, 0), run.stderr)
    run = backend.lead("again", "-c", "date +%s.%N; exit 3")
    times = wait_for(lambda: len(found := run.stdout.split()) > 2 and [float(each) for each in found], "three terms")
    check(times[1] - times[0] >= 1 and times[2] - times[1] >= 2, times)
    check("the command has ended with exit code 3" in run.stderr, run.stderr)
    os.kill(run.pid, signal.SIGTERM)
    run.end()
    run = backend.lead("again", "-c", "exit 0")
    wait_for(lambda: "the command has ended with exit code 0" in run.stderr, "a success within 1 s counts as a failure")
    os.kill(run.pid, signal.SIGTERM)
    run.end()
    run = backend.lead("again", "-q", "-c", "echo done; exit 3")
    run.wait_for("done\ndone")
    check(run.stderr == "", run.stderr)
    os.kill(run.pid, signal.SIGTERM)
    run.end()


@case()
def end_of_leader_exits_with_code_of_command(backend):
    run = backend.lead("end", "-c", "trap 'exit 7' TERM; " + READY)
    run.wait_for("ready")
    waiter = backend.lead("end", "-v", "--", "true")
    wait_for(lambda: "waiting" in waiter.stderr, "the second process waits")
    os.kill(waiter.pid, signal.SIGTERM)
    check(waiter.end() == 143, waiter.stderr)
    run.terminate(7)
    run = backend.lead("end", "-c", "trap '' TERM; " + READY)
    run.wait_for("ready")
    run.terminate(137)
    backend.lead("end", "-c", "kill -INT $$").exits_with(130)  # what Ctrl-C on a terminal does
    backend.lead("end", "--", "/etc/passwd").exits_with(126)
    backend.lead("end", "--", "/nonexistent").exits_with(127)
    check(backend.is_free("end"), "nothing is left behind")


@case()
def leader_that_lost_lock_leads_again(backend):
    run = backend.lead("deposed", "-c", 'echo "leads $COLOCK_FENCE"; ' + READY)
    run.wait_for("leads")
    backend.start("break", "deposed", "--yes").exits_with(0)
    run.wait_for(r"(?s)leads.*leads")
    check('the lock "deposed" was lost' in run.stderr, run.stderr)
    run.terminate()
    run = backend.lead("deposed", "--max-hold", "2s", "-c", "echo leads; " + READY)
    run.wait_for(r"(?s)leads.*leads")
    os.kill(run.pid, signal.SIGTERM)
    run.end()


@case()
def leader_shows_progress_and_obeys_ctrl_c(backend):
    holder = backend.lead("shown", "-c", READY)
    holder.wait_for("ready")
    reader, writer = os.pipe()
    run = backend.under_terminal(f"$colock lead shown {' '.join(backend.short)} -c '{READY}'", stdin=reader)
    run.wait_for(r"waiting for shown, held by \S+ \(pid " + str(holder.pid))
    holder.terminate()
    run.wait_for("\r\x1b\\[Kready")
    os.write(writer, b"\x03")
    check(run.end() == 130, run.stdout)
    os.close(writer)
    os.close(reader)


# --- terminals ------------------------------------------------------------------------------------------------------


def typed(line):
    """Input for a pseudo-terminal, which ends when the process has ended."""
    reader, writer = os.pipe()
    os.write(writer, line.encode())
    return reader, writer


@case()
def child_reads_from_terminal(backend):
    reader, writer = typed("hello\n")
    run = backend.under_terminal(
        f"$colock run reads {' '.join(backend.short)} -c 'read line; echo got=$line'; stty -a >/dev/null && echo mine",
        stdin=reader)
    run.wait_for("got=hello")
    run.wait_for("mine")
    os.close(writer)
    run.exits_with(0)
    os.close(reader)


@case()
def ctrl_c_ends_child(backend):
    reader, writer = os.pipe()
    run = backend.under_terminal(f"$colock run interrupt {' '.join(backend.short)} -c '{READY}'", stdin=reader)
    run.wait_for("ready")
    os.write(writer, b"\x03")
    check(run.end(limit=10) == 130, run.stdout)
    os.close(writer)
    os.close(reader)


@case()
def ctrl_z_stops_child_only(backend):
    reader, writer = os.pipe()
    script = "echo $$; read line; echo got=$line; read line; echo got=$line"
    run = backend.under_terminal(f"echo colock $$; exec $colock run stop {' '.join(backend.short)} -c '{script}'", stdin=reader)
    child = int(run.wait_for(r"(?m)^(\d+)\r$")[1])
    colock = int(run.wait_for(r"colock (\d+)")[1])
    os.write(writer, b"first\n")
    run.wait_for("got=first")
    os.write(writer, b"\x1a")
    wait_for(lambda: process_state(child) == "T", "the child is stopped")
    check(process_state(colock) in "SR", "colock is not stopped")
    os.kill(colock, signal.SIGCONT)
    os.write(writer, b"second\n")
    run.wait_for("got=second")
    os.close(writer)
    run.exits_with(0)
    os.close(reader)


@case()
def progress_is_shown_on_terminal_only(backend):
    holder = backend.start_holder("progress")
    run = backend.under_terminal(f"$colock run progress {' '.join(backend.short)} -w 2500ms -- true")
    check(run.end() == 75, run.stdout)
    check("waiting for progress" in run.stdout, run.stdout)
    check(re.search(r"held by \S+ \(pid " + str(holder.pid) + r"\) for \d+ s", run.stdout), run.stdout)
    quiet = backend.under_terminal(f"$colock run progress {' '.join(backend.short)} -q -w 1500ms -- true")
    check(quiet.end() == 75 and "waiting" not in quiet.stdout, quiet.stdout)
    silent = backend.run("progress", "-w", "1500ms", "--", "true").exits_with(75)
    check("waiting" not in silent.stderr, silent.stderr)
    holder.terminate()


# --- administration -------------------------------------------------------------------------------------------------


@case()
def ls_lists_locks_of_prefix(backend):
    holder = backend.start_holder("list:one", "--owner", "nightly \x1b[31m", "--comment", "backup")
    entry = json.loads(backend.start("ls", "list:", "--json").exits_with(0).stdout)
    check(entry["key"] == "list:one" and entry["mode"] == "exclusive" and entry["comment"] == "backup", entry)
    check(entry["owner"] == "nightly \x1b[31m" and entry["host"], entry)
    if backend.name != "zookeeper":
        check(0 < entry["remaining_ms"] <= 3000, entry)
    check(backend.start("ls", "nothing:").exits_with(0).stdout == "", "no locks")
    table = backend.start("ls", "list:").exits_with(0).stdout
    check(re.match(r"KEY +MODE +OWNER +HOST +GROUP +AGE +REMAINING +FENCE\n", table), table)
    if backend.name == "zookeeper":
        check(table.splitlines()[1].split()[-2] == "-", "the remaining time is not known:", table)
    check("\x1b" not in table, "the owner of another process cannot control the terminal")
    terminal = backend.under_terminal("$colock ls list:")
    terminal.exits_with(0)
    check("\x1b[1mKEY" in terminal.stdout, terminal.stdout)
    plain = backend.under_terminal("NO_COLOR=1 $colock ls list:")
    plain.exits_with(0)
    check("\x1b" not in plain.stdout, plain.stdout)
    holder.terminate()


@case()
def answer_to_break_is_obeyed(backend):
    holder = backend.start_holder("confirm")
    for answer, code in (("n\n", 1), ("y\n", 0)):
        reader, writer = typed(answer)
        run = backend.under_terminal("$colock break confirm", stdin=reader)
        run.wait_for(r"\[y/N\]")
        check(run.end() == code, run.stdout)
        os.close(writer)
        os.close(reader)
    holder.exits_with(79)


@case()
def purge_removes_expired_locks(backend):
    backend.start("purge").exits_with(0)
    if backend.name != "mongodb":  # Redis removes expired keys itself, and ZooKeeper removes what a session held
        return
    with tempfile.TemporaryDirectory() as folder:
        backend.start("detach", "purged", "--ticket", f"{folder}/ticket", "--ttl", "500ms").exits_with(0)
        found = wait_for(lambda: backend.start("purge", "--json", "--limit", "5").exits_with(0).stdout, "the lock is purged")
        check(json.loads(found.splitlines()[0])["key"] == "purged", found)


@case()
def detached_lock_is_adopted_once(backend):
    with tempfile.TemporaryDirectory() as folder:
        ticket = f"{folder}/ticket"
        detach = backend.start("detach", "detached", "--ticket", ticket, "--ttl", "20s")
        if not backend.tickets:
            detach.exits_with(64)
            check(not os.path.exists(ticket), "no file is left")
            return
        detach.exits_with(0)
        check(os.stat(ticket).st_mode & 0o777 == 0o600, "only its owner reads the ticket")
        check(not backend.is_free("detached"), "the lock outlives the process")
        backend.start("detach", "other", "--ticket", ticket, "--ttl", "20s").exits_with(64)
        copy = f"{folder}/copy"
        with open(ticket, encoding="utf-8") as source, open(copy, "w", encoding="utf-8") as target:
            target.write(source.read())
        adopt = backend.start("adopt", "--ticket", ticket, *backend.short, "-c", 'echo "$COLOCK_KEY"; exit 4').exits_with(4)
        check(adopt.stdout == "detached\n", adopt.stdout)
        check(not os.path.exists(ticket), "the ticket is used")
        check(backend.is_free("detached"), "the lock is released")
        backend.start("adopt", "--ticket", copy, *backend.short, "--", "true").exits_with(79)
        backend.start("detach", "full", "--ticket", "/dev/full", "--ttl", "20s").exits_with(64)
        holder = backend.start_holder("detached")
        backend.start("detach", "detached", "-n", "--ticket", ticket, "--ttl", "20s").exits_with(75)
        check(not os.path.exists(ticket), "no file is left")
        holder.terminate()


@case()
def password_file_replaces_password_in_url(backend):
    if backend.name != "redis":
        return
    reply = redis_command(backend, "ACL SETUSER tester on >secret ~* &* +@all")
    check(reply.startswith("+OK"), reply)
    url = backend.url.replace("//", "//tester@")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("secret\n")
        file.flush()
        with_file = backend.environment(COLOCK_BACKEND=url, COLOCK_PASSWORD_FILE=file.name)
        run = backend.start("run", "password", "--", "true", environment=with_file).exits_with(0)
        check(run.stderr == "", run.stderr)
    backend.start("run", "password", "--", "true",
                  environment=backend.environment(COLOCK_PASSWORD_FILE="/nonexistent")).exits_with(64)
    run = backend.start("run", "password", "--backend", url.replace("tester", "tester:secret"), "--", "true")
    check(run.exits_with(0).stderr.count("\n") == 1 and "secret" not in run.stderr, run.stderr)


def main():
    colock, name, *selected = sys.argv[1:]
    backend = Backend(colock, name)

    def run(function):
        start = time.monotonic()
        result = "passed"
        try:
            function(backend)
        except Exception as problem:  # pylint: disable=broad-except
            result = f"FAILED: {type(problem).__name__}: {problem}"
        print(f"{function.__name__}: {time.monotonic() - start:.1f} s: {result}", flush=True)
        return result != "passed"

    def select(cases):
        return [each for each in cases if not selected or each.__name__ in selected]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        failures = list(pool.map(run, select(CASES)))
    failures += [run(each) for each in select(CASES_THAT_STOP_THE_SERVER)]
    for each in Process.started:  # those of failed cases
        if each.poll() is None:
            each.kill()
    return 1 if any(failures) else 0


if __name__ == "__main__":
    sys.exit(main())
