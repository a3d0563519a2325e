#!/usr/bin/env python3
"""Runs `colock doctor` on real servers.

    doctor.py COLOCK redis|zookeeper|mongodb [CASE]...

scripts/servers.sh has started the server of ZooKeeper or MongoDB. The cases of Redis start their own servers.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PASSWORD = "s3cret-word"
# The rights of the page docs/redis.md.
KEYS = "resetkeys ~{colock}:* ~{colock}#* resetchannels &{colock}:* -@all".split()
COMMANDS = (
    "+ping +info +select +client|kill +eval +evalsha +set +get +getex +mget +del +incrby +persist +pexpire +pexpireat "
    "+pttl +type +time +publish +subscribe +unsubscribe +scan +zadd +zcard +zrange +zrangebyscore +zrem +zscan +zscore"
).split()


class Failed(Exception):
    """A promise of the manual does not hold."""


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(each) for each in what))


def wait_for(condition, what, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise Failed(f"in {limit} s: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Report:
    """The lines of one run with --json."""

    def __init__(self, done):
        self.code = done.returncode
        self.stderr = done.stderr
        self.stdout = done.stdout
        self.lines = [json.loads(each) for each in done.stdout.splitlines()]
        check(PASSWORD not in done.stdout + done.stderr, "the password is shown:", done.stdout, done.stderr)

    def line(self, name, server=""):
        found = [each for each in self.lines if each["check"] == name and server in each["server"]]
        check(found, "no line", name, server, "in", self.stdout, self.stderr)
        return found[0]

    def expect(self, name, result, *texts, server=""):
        line = self.line(name, server)
        check(line["result"] == result, name, "is not", result, ":", line)
        for text in texts:
            check(text in line["value"] + ": " + line["remedy"], text, "is not in", line)

    def exits_with(self, code):
        check(self.code == code, "exit code", self.code, "instead of", code, ":", self.stdout, self.stderr)
        check((code == 1) == any(each["result"] == "fail" for each in self.lines) or code > 1, self.stdout)
        return self


class Doctor:
    def __init__(self, colock):
        self.colock = colock

    def run(self, url, *words, **variables):
        environment = os.environ | {"COLOCK_BACKEND": url} | variables
        return subprocess.run([self.colock, "doctor", *words], env=environment, text=True, capture_output=True, timeout=60,
                              check=False)

    def report(self, url, **variables):
        return Report(self.run(url, "--json", **variables))

    def under_terminal(self, url, **variables):
        environment = os.environ | {"COLOCK_BACKEND": url} | variables
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
        line = f"{shlex.quote(self.colock)} doctor"
        return subprocess.run(["script", "-qec", line, "/dev/null"], env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False).stdout


@contextlib.contextmanager
def redis_server(*options, config=""):
    """Starts a server, or a Sentinel, and yields a client of it."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        file = pathlib.Path(folder) / "server.conf"
        # A Sentinel refuses the setting save.
        config = config or 'save ""'
        file.write_text(f"bind 127.0.0.1\nport {port}\ndir {folder}\n{config}\n")
        server = subprocess.Popen([os.environ["COLOCK_REDIS_SERVER"], str(file), *options], stdout=subprocess.DEVNULL)
        try:
            client = Redis(port)
            wait_for(client.answers, "a Redis server answers")
            yield client
        finally:
            server.send_signal(signal.SIGCONT)
            server.kill()
            server.wait()


class Redis:
    """Sends commands that are answered with one line, or with a list."""

    def __init__(self, port):
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.url = f"redis://{self.host}"

    def ask(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            text = f"*{len(words)}\r\n" + "".join(f"${len(each.encode())}\r\n{each}\r\n" for each in words)
            connection.sendall(text.encode())
            # The server closes the connection after its answer. A Sentinel has no QUIT.
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65536):
                answer += part
            return answer.decode()

    def answers(self):
        try:
            return "+PONG" in self.ask("PING")
        except OSError:
            return False

    def add_user(self, *rights):
        check("+OK" in self.ask("ACL", "SETUSER", "app", "on", ">" + PASSWORD, *rights), "the user is made")
        return f"redis://app:{PASSWORD}@{self.host}"


SAFE = ("--appendonly", "yes", "--appendfsync", "always")


def redis_healthy(doctor):
    with redis_server(*SAFE) as server:
        report = doctor.report(server.url).exits_with(0)
        # A busy machine is slow.
        slow = ("acquire", "round trip")
        check(all(each["result"] == "ok" or each["check"] in slow for each in report.lines), report.stdout)
        for name in ("locking", "acquire", "wake-up", "list", "version", "maxmemory-policy", "clock", "round trip",
                     "right PUBLISH"):
            report.line(name)
        check(report.stderr == "", report.stderr)
        # Only the fence counter is left.
        check("$13\r\n{colock}:fence" in server.ask("KEYS", "*") or "*1\r\n" in server.ask("KEYS", "*"),
              server.ask("KEYS", "*"))
        check("OK    127.0.0.1" in doctor.run(server.url).stdout, "a table")
        check("\033" not in doctor.run(server.url).stdout, "no colours in a pipe")
        check("\033[32mOK" in doctor.under_terminal(server.url), "colours on a terminal")
        check("\033" not in doctor.under_terminal(server.url, NO_COLOR="1"), "no colours with NO_COLOR")


def redis_without_persistence(doctor):
    with redis_server() as server:
        report = doctor.report(server.url).exits_with(0)
        report.expect("appendonly", "warn", "no", "a restart loses locks")


def redis_lazy_persistence(doctor):
    with redis_server("--appendonly", "yes") as server:
        doctor.report(server.url).exits_with(0).expect("appendfsync", "warn", "everysec", "set appendfsync always")


def redis_eviction(doctor):
    with redis_server("--maxmemory-policy", "allkeys-lru", *SAFE) as server:
        doctor.report(server.url).exits_with(1).expect("maxmemory-policy", "fail", "allkeys-lru", "noeviction")


def redis_rights_of_the_page(doctor):
    with redis_server(*SAFE) as server:
        report = doctor.report(server.add_user(*KEYS, *COMMANDS)).exits_with(0)
        report.expect("locking", "ok")
        report.expect("appendfsync", "warn", "not checked", "NOPERM", "redis-cli CONFIG GET appendfsync")
        report.expect("maxmemory-policy", "ok", "noeviction")


def redis_missing_right(doctor):
    with redis_server(*SAFE) as server:
        rights = [each for each in COMMANDS if each != "+pexpire"]
        doctor.report(server.add_user(*KEYS, *rights)).exits_with(1).expect("locking", "fail", "PEXPIRE")


def redis_missing_optional_rights(doctor):
    with redis_server(*SAFE) as server:
        optional = ("+subscribe", "+publish", "+client|kill", "+scan", "+zadd")
        rights = [each for each in COMMANDS if each not in optional]
        report = doctor.report(server.add_user(*KEYS, *rights)).exits_with(0)
        report.expect("right SUBSCRIBE", "warn", "waiters poll")
        report.expect("right PUBLISH", "warn", "wakes no waiter")
        report.expect("right CLIENT KILL", "warn", "waiting for its ttl")
        report.expect("rights of shared locks", "warn", "ZADD")
        report.expect("list", "warn", "not checked")


def redis_missing_info(doctor):
    with redis_server(*SAFE) as server:
        rights = [each for each in COMMANDS if each != "+info"]
        report = doctor.report(server.add_user(*KEYS, *rights)).exits_with(0)
        report.expect("right INFO", "warn", "cannot be checked")
        report.expect("version", "warn", "not checked", "redis-cli INFO server")


def redis_wrong_password(doctor):
    with redis_server(*SAFE) as server:
        server.add_user(*KEYS, *COMMANDS)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(PASSWORD + "-wrong\n")
            file.flush()
            report = doctor.report(f"redis://app@{server.host}", COLOCK_PASSWORD_FILE=file.name)
        report.exits_with(1).expect("locking", "fail", "WRONGPASS")


def redis_password_file(doctor):
    with redis_server(*SAFE) as server, tempfile.NamedTemporaryFile("w") as file:
        check("+OK" in server.ask("ACL", "SETUSER", "default", "resetpass", ">" + PASSWORD), "a password")
        file.write(PASSWORD + "\n")
        file.flush()
        report = doctor.report(server.url, COLOCK_PASSWORD_FILE=file.name).exits_with(0)
        report.expect("version", "ok")
        report.expect("locking", "ok")


def redis_replica(doctor):
    with redis_server(*SAFE) as master, redis_server("--replicaof", f"127.0.0.1 {master.port}", *SAFE) as replica:
        wait_for(lambda: "state=online" in master.ask("INFO", "replication"), "the replica follows")
        report = doctor.report(master.url).exits_with(0)
        report.expect("replicas", "warn", "1", "a failover can lose a lock")
        report.expect("min-replicas-to-write", "warn", "is not set")
        report.expect("link to the master", "ok", "up", server=replica.host)
        report.expect("clock", "ok", server=replica.host)
        master.ask("CONFIG", "SET", "min-replicas-to-write", "1")
        master.ask("CONFIG", "SET", "min-replicas-max-lag", "60")
        report = doctor.report(master.url).exits_with(0)
        report.expect("min-replicas-to-write", "ok", "1")
        report.expect("min-replicas-max-lag", "warn", "60 s")


def redis_sentinels(doctor):
    with redis_server(*SAFE) as master:
        config = f"sentinel monitor main 127.0.0.1 {master.port} 2"
        with redis_server("--sentinel", config=config) as sentinel:
            url = f"redis+sentinel://{sentinel.host},127.0.0.1:1/main"
            report = doctor.report(url).exits_with(1)
            report.expect("locking", "ok")
            report.expect("Sentinels", "warn", "1", "at least 3 Sentinels")
            report.expect("quorum", "fail", "2")
            report.expect("usable", "fail", "NOQUORUM")
            report.expect("replicas of the master", "warn", "0", server="sentinel")
            report.expect("answer", "warn", "no", server="sentinel 127.0.0.1:1")
            report.expect("version", "ok", server=master.host)


def redis_cluster(doctor):
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "900", *SAFE)
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(redis_server(*options, "--cluster-port", str(free_port()))) for _ in range(2)]
        nodes[0].ask("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
        nodes[1].ask("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
        nodes[1].ask("CLUSTER", "SET-CONFIG-EPOCH", "2")
        bus = nodes[0].ask("CONFIG", "GET", "cluster-port").split("\r\n")[-2]
        nodes[1].ask("CLUSTER", "MEET", "127.0.0.1", str(nodes[0].port), bus)
        wait_for(lambda: all("cluster_state:ok" in each.ask("CLUSTER", "INFO") for each in nodes), "the nodes agree")
        report = doctor.report(f"redis+cluster://127.0.0.1:1,{nodes[0].host}").exits_with(0)
        report.expect("locking", "ok")
        report.expect("answer", "warn", "no", server="127.0.0.1:1")
        report.expect("state", "ok", server="cluster")
        report.expect("served slots", "ok", "16384", server="cluster")
        report.expect("full coverage", "warn", "yes", "cluster-require-full-coverage no", server="cluster")
        report.expect("node timeout", "warn", "900 ms", server="cluster")
        for each in nodes:
            report.expect("appendfsync", "ok", server=each.host)
        nodes[1].ask("CLUSTER", "DELSLOTS", "9000")
        nodes[0].ask("CLUSTER", "DELSLOTS", "9000")
        report = doctor.report(f"redis+cluster://{nodes[1].host}").exits_with(69)
        report.expect("state", "fail", "fail", server="cluster")
        report.expect("served slots", "fail", "16383", server="cluster")


def redis_quorum(doctor):
    with redis_server(*SAFE) as first, redis_server(*SAFE) as second, redis_server() as third:
        url = f"redis+quorum://{first.host},{second.host},{third.host}"
        report = doctor.report(url).exits_with(0)
        report.expect("locking", "ok", server="quorum")
        report.expect("appendonly", "ok", server=first.host)
        report.expect("appendonly", "warn", server=third.host)


def redis_down(doctor):
    report = doctor.report("redis://127.0.0.1:1").exits_with(69)
    report.expect("answer", "warn", "Connection refused")
    report.expect("locking", "fail", "Connection refused")
    lines = report.stderr.splitlines()
    check(len(lines) == 1 and lines[0].startswith("colock"), report.stderr)


class FakeZookeeper:
    """A server of a larger ensemble, which answers only commands of four letters."""

    def __init__(self, **answers):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.answers = answers
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                word = connection.recv(4).decode(errors="replace")
                refusal = f"{word} is not executed because it is not in the whitelist.\n"
                connection.sendall(self.answers.get(word, refusal if word.isalpha() else "").encode())


def zookeeper_url():
    # The servers of the tests have short ticks, see scripts/servers.sh.
    return os.environ["COLOCK_TEST_ZOOKEEPER"] + "?session_timeout=8s"


def zookeeper_standalone(doctor):
    report = doctor.report(zookeeper_url()).exits_with(0)
    report.expect("locking", "ok")
    report.expect("wake-up", "ok")
    report.expect("version", "ok")
    report.expect("mode", "warn", "standalone")
    report.expect("tickTime", "ok", "500 ms")
    report.expect("session timeouts", "ok", "1000 to 10000 ms")
    report.expect("servers of the ensemble", "warn", "1")
    report.expect("limits of sessions", "ok", "equal")


def zookeeper_wrong_tick(doctor):
    report = doctor.report(zookeeper_url() + "&server_tick=100ms").exits_with(1)
    report.expect("tickTime", "fail", "500 ms", "add server_tick=500ms")


def zookeeper_wrong_session_timeout(doctor):
    report = doctor.report(os.environ["COLOCK_TEST_ZOOKEEPER"] + "?session_timeout=30s").exits_with(0)
    report.expect("session timeouts", "warn", "30000 ms is not granted")


def zookeeper_few_ticks(doctor):
    report = doctor.report(os.environ["COLOCK_TEST_ZOOKEEPER"] + "?session_timeout=1s&server_tick=500ms").exits_with(0)
    report.expect("session in ticks", "warn", "less than four")


def zookeeper_ensemble(doctor):
    state = "Zookeeper version: 3.8.4-x, built on 2024\nMode: {}\nNode count: 5\n"
    members = "".join(f"server.{i}=h{i}:2888:3888:participant\n" for i in range(1, 5))
    leader = FakeZookeeper(srvr=state.format("leader"), mntr="zk_version\t3.8.4\nzk_synced_followers\t1\n",
                           conf="tickTime=2000\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n" + members)
    follower = FakeZookeeper(srvr=state.format("follower"))
    url = zookeeper_url().replace("?", f",{leader.host},{follower.host},127.0.0.1:1?")
    report = doctor.report(url).exits_with(1)
    report.expect("mode", "ok", "leader", server=leader.host)
    report.expect("tickTime", "warn", "not checked (conf is not in 4lw.commands.whitelist)", server=follower.host)
    report.expect("answer", "warn", "Connection refused", server="127.0.0.1:1")
    report.expect("limits of sessions", "fail", "different")
    report.expect("servers of the ensemble", "warn", "4")
    report.expect("servers that answer", "warn", "3")
    report.expect("followers in sync", "warn", "1")
    report = doctor.report(url + "&smallest_session_timeout=2s&operation_timeout=10s").exits_with(0)
    report.expect("limits of sessions", "ok", "different")


def zookeeper_down(doctor):
    report = doctor.report("zookeeper://127.0.0.1:1").exits_with(69)
    report.expect("answer", "warn", "Connection refused")


def mongodb_single_member(doctor):
    report = doctor.report(os.environ["COLOCK_TEST_MONGODB"]).exits_with(0)
    report.expect("locking", "ok")
    report.expect("state", "ok", "primary")
    report.expect("version", "ok")
    report.expect("clock", "ok")
    report.expect("round trip", "ok")
    report.expect("replica set", "ok")
    report.expect("members", "warn", "1", "run 3 members")
    # The server of the tests does not have this command.
    report.expect("majority on disk", "warn", "not checked", "rs.conf()")
    report.expect("change streams", "ok", "used")
    report.expect("right listCollections", "ok")


def mongodb_member_down(doctor):
    host = os.environ["COLOCK_TEST_MONGODB"].split("//")[1]
    report = doctor.report(f"mongodb://127.0.0.1:1,{host}").exits_with(0)
    report.expect("answer", "warn", "no", server="127.0.0.1:1")
    report.expect("answer", "ok", server=host)


def mongodb_down(doctor):
    report = doctor.report("mongodb://127.0.0.1:1").exits_with(69)
    report.expect("answer", "warn", "no", server="127.0.0.1:1")


def main():
    colock, backend, *names = sys.argv[1:]
    doctor = Doctor(colock)
    cases = {name: case for name, case in globals().items() if name.startswith(backend + "_") and callable(case)}
    cases.pop("redis_server", None)
    cases.pop("zookeeper_url", None)
    if names:
        cases = {name: cases[name] for name in names}

    # The doctors of one server share a lock, so they run one after the other there.
    turn = contextlib.nullcontext() if backend == "redis" else threading.Lock()

    def run(name):
        begin = time.monotonic()
        try:
            with contextlib.nullcontext() if name.endswith("_down") else turn:
                cases[name](doctor)
        except Exception as failure:  # pylint: disable=broad-exception-caught
            return f"{name}: {type(failure).__name__}: {failure}"
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
        return None

    # The cases in which no server answers take longest.
    order = sorted(cases, key=lambda name: not name.endswith("_down"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        failures = [each for each in pool.map(run, order) if each]
    if failures or not cases:
        sys.exit("\n".join(failures) or "there are no cases")


if __name__ == "__main__":
    main()
