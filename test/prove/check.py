#!/usr/bin/env python3
"""Checks the histories of a run of scripts/prove.sh.

    test/prove/check.py FOLDER

Prints what was counted, each violation with a timeline of its key, and the times in which the clients recovered from
the faults. Exits with 1 after a violation. docs/testing.md says what is checked.

A hold is the period in which a caller may believe that it holds a lock: from the grant until the caller gives the lock
up, is told that the lock is lost, reaches the deadline that it knows, or is killed, whichever is first. A possession is
the longer period in which the servers may store the lock: from the start of the acquire until the answer to the
release, or until the ttl has passed for certain.
"""
import bisect
import collections
import dataclasses
import json
import pathlib
import statistics
import sys

SECOND = 10**9
NEVER = 10**30
max_printed = 10
max_timeline = 60
not_carried_out = ("busy", "access_denied", "misconfigured_backend")
acquires = ("acquire", "try_acquire", "acquire_all", "adopt")


@dataclasses.dataclass
class Call:
    name: str
    what: str
    process: str
    begin: int
    fields: dict
    end: int = NEVER
    result: str = "unanswered"
    answer: dict = dataclasses.field(default_factory=dict)

    @property
    def keys(self) -> list:
        return self.fields.get("keys") or ([self.fields["key"]] if "key" in self.fields else [])


@dataclasses.dataclass
class Hold:
    key: str
    acquire: Call
    fence: int
    start: int
    deadline: int
    until: int = NEVER
    # The end without the effect of breaks and lost data.
    believed_until: int = NEVER
    lost: tuple = ()
    suspended_by: str = ""

    @property
    def shared(self) -> bool:
        return self.acquire.fields["shared"]

    def __str__(self) -> str:
        mode = "shared" if self.shared else "exclusive"
        return f"{self.acquire.name} ({mode}, fence {self.fence})"


@dataclasses.dataclass
class Fault:
    name: str
    target: str
    suspends: str
    began: int
    ended: int


class History:
    """What the processes and the nemesis have written."""

    def __init__(self, folder: pathlib.Path):
        self.calls: dict = {}
        self.holds: dict = {}
        self.faults: list = []
        self.killed: dict = {}
        self.problems: list = []
        self.settings: dict = {}
        for line in lines_of(folder / "run"):
            self.read_run(line)
        for file in folder.iterdir():
            if file.name.isdigit():
                for line in lines_of(file):
                    self.read_client(file.name, line)
        for hold in self.holds.values():
            hold.until = min(hold.until, hold.deadline, self.killed.get(hold.acquire.process, NEVER))
            hold.believed_until = hold.until
        self.longest_ttl = max((call.fields["ttl"] for call in self.calls.values() if "ttl" in call.fields),
                               default=0) * 10**6
        # A lock that was not released with an answer may remain until its ttl has passed and the cleanup has ended.
        self.slack = self.longest_ttl + 5 * self.settings["operation_timeout"] * 10**6

    def read_run(self, line: dict) -> None:
        if "backend" in line:
            self.settings = line
        elif "fault" in line:
            self.faults.append(Fault(line["fault"], line["target"], line["suspends"], line["began"], line["t"]))
        elif "killed" in line:
            self.killed[str(line["killed"])] = line["t"]
        elif "ended" in line and line["status"] != 0:
            self.problems.append(f"process {line['ended']} has failed with the status {line['status']}")
        for left in line.get("residue", []):
            self.problems.append(f"remains on the servers: {left}")

    def read_client(self, process: str, line: dict) -> None:
        time = line["t"]
        if "begin" in line:
            self.calls[line["call"]] = Call(line["call"], line["begin"], process, time, line)
        elif "end" in line:
            call = self.calls[line["end"]]
            call.end, call.result, call.answer = time, line["result"], line
            # The holder keeps the deadline of its last extension.
            if "deadline" in line:
                self.holds[call.fields["of"], call.fields["key"]].deadline = line["deadline"] or NEVER
        elif "held" in line:
            self.holds[line["held"], line["key"]] = Hold(
                line["key"], self.calls[line["held"]], line["fence"], time, line["deadline"] or NEVER)
        elif "left" in line:
            hold = self.holds[line["left"], line["key"]]
            hold.until = min(hold.until, time)
            hold.deadline = line["deadline"] or NEVER
        elif "lost" in line:
            hold = self.holds[line["lost"], line["key"]]
            hold.until = min(hold.until, time)
            hold.lost = (time, line["reason"])


def lines_of(file: pathlib.Path) -> list:
    """A process that was killed may have written a part of its last line."""
    lines = file.read_text().splitlines()
    result = []
    for number, line in enumerate(lines):
        try:
            result.append(json.loads(line))
        except json.JSONDecodeError:
            if number + 1 < len(lines):
                raise
    return result


class Latest:
    """Periods. Finds the one that ends last among those that begin at a time or before."""

    def __init__(self, periods: list):
        self.periods = sorted(periods, key=lambda each: each[0])
        self.begins = [each[0] for each in self.periods]
        self.latest = []
        for each in self.periods:
            best = self.latest[-1] if self.latest else each
            self.latest.append(each if each[1] > best[1] else best)

    def begun_by(self, time: int):
        number = bisect.bisect_right(self.begins, time)
        return self.latest[number - 1] if number else None


class Checker:
    def __init__(self, history: History):
        self.history = history
        self.violations: list = []
        self.counts = collections.Counter()
        self.by_key = collections.defaultdict(list)
        self.breaks = collections.defaultdict(list)
        self.calls_of_key = collections.defaultdict(list)
        self.releases: dict = {}
        for call in history.calls.values():
            for key in call.keys:
                self.calls_of_key[key].append(call)
            if call.what == "break_lock":
                self.breaks[call.keys[0]].append(call)
            if call.what == "release":
                self.releases[call.fields["of"]] = call
        for hold in history.holds.values():
            self.by_key[hold.key].append(hold)

    def run(self) -> list:
        for problem in self.history.problems:
            self.report(problem)
        self.suspend()
        for key in self.history.settings["keys"]:
            # A hold of which a fault or a break has left nothing still shows that the key can be acquired, and later
            # fences are above its fence.
            believed = sorted((each for each in self.by_key[key] if each.start < each.believed_until),
                              key=lambda each: each.start)
            holds = [each for each in believed if each.start < each.until]
            self.by_key[key] = holds
            self.counts["holds"] += len(holds)
            if not believed:
                self.report("the key was never held", key)
            self.check_exclusion(key, holds)
            self.check_semaphore(key, holds)
            if self.history.settings["fence"]:
                self.check_fences(key, believed)
            self.check_order(key)
            self.check_answers(key, holds)
        self.check_listings()
        self.check_losses()
        self.check_releases()
        self.check_writes()
        return self.violations

    def report(self, text: str, key: str = "", begin: int = 0, end: int = 0) -> None:
        self.violations.append((text, key, begin, end))

    # Suspended promises: see the table of faults in docs/testing.md.
    def suspend(self) -> None:
        for key, breaks in self.breaks.items():
            for each in breaks:
                for hold in self.by_key[key]:
                    if hold.until > each.begin and self.may_remove(each, hold):
                        hold.until = each.begin
                        hold.suspended_by = "break_lock"
        for fault in self.history.faults:
            if fault.suspends == "none":
                continue
            for holds in self.by_key.values():
                for hold in holds:
                    # A grant from before the fault may be received a moment after it.
                    is_affected = hold.start < fault.ended or (
                        hold.acquire.begin < fault.ended and hold.start < fault.ended + SECOND)
                    if is_affected and hold.until > fault.began:
                        hold.until = fault.began
                        hold.suspended_by = fault.name
        for holds in self.by_key.values():
            for hold in holds:
                if hold.suspended_by:
                    self.counts["holds suspended by: " + hold.suspended_by] += 1

    def may_remove(self, call: Call, hold: Hold) -> bool:
        """Whether this break may have removed the lock."""
        if call.result == "done" and f"{hold.key} {hold.acquire.name}" in call.answer["found"]:
            return True
        # A break without an answer may have removed each lock that it may have seen. A break on a quorum may also
        # remove the parts of a lock that is just being granted; it does not report such a lock.
        is_sure = call.result == "done" and not (
            self.history.settings["backend"] == "quorum" and hold.start > call.begin)
        return not is_sure and hold.acquire.begin < call.end

    def check_exclusion(self, key: str, holds: list) -> None:
        last = last_exclusive = None
        for each in holds:
            before = last_exclusive if each.shared else last
            if before and each.start < before.until:
                overlap = (min(before.until, each.until) - each.start) / 10**6
                self.report(f"two holds at once: {before} and {each}, for {overlap:.1f} ms", key, before.start,
                            each.start)
            if not last or each.until > last.until:
                last = each
            if not each.shared and (not last_exclusive or each.until > last_exclusive.until):
                last_exclusive = each

    def check_semaphore(self, key: str, holds: list) -> None:
        if key != self.history.settings["semaphore"]:
            return
        ends: list = []
        limit = self.history.settings["max_holders"]
        for each in holds:
            # Adopted locks have no limit of their own, and groups are exclusive.
            ends = [end for end in ends if end > each.start]
            if each.shared:
                ends.append(each.until)
            if len(ends) > limit:
                self.report(f"{len(ends)} shared holds at once, the limit is {limit}: {each}", key, each.start,
                            each.start)

    def check_fences(self, key: str, holds: list) -> None:
        greatest = greatest_exclusive = None
        for each in holds:
            lower = greatest_exclusive if each.shared else greatest
            if lower and each.fence <= lower.fence and each.start < each.until:
                self.report(f"the fence has not grown: {lower}, then {each}", key, lower.start, each.start)
            if not greatest or each.fence > greatest.fence:
                greatest = each
            if not each.shared and (not greatest_exclusive or each.fence > greatest_exclusive.fence):
                greatest_exclusive = each

    def check_order(self, key: str) -> None:
        """The callers of one process are served in the order of their calls; with fifo, those of all processes, if the
        first was in the queue for a second. With fifo, both only if there was no fault."""
        by_process = collections.defaultdict(list)
        for call in self.calls_of_key[key]:
            hold = self.history.holds.get((call.name, key))
            if call.what == "acquire" and hold and not hold.shared:
                by_process[call.process].append((call.begin, hold.start, call))
        for waits in by_process.values():
            latest = None
            for begin, granted, call in sorted(waits, key=lambda each: each[0]):
                if latest and granted < latest[1]:
                    self.report(f"{call.name} was served before {latest[2].name}, which has called before", key,
                                latest[0], granted)
                if self.is_order_suspended(call, granted):
                    self.counts["waits that a fault may have moved back in the queue"] += 1
                elif not latest or granted > latest[1]:
                    latest = (begin, granted, call)
        if self.history.settings["fifo"]:
            self.check_order_of_processes(key, by_process)

    def check_order_of_processes(self, key: str, by_process: dict) -> None:
        before = {}
        for process, waits in by_process.items():
            others = [(call.begin, self.left_at(call, key)) for call in self.calls_of_key[key]
                      if call.process == process and call.what in acquires]
            before[process] = Latest(others)
        everything = sorted((each for waits in by_process.values() for each in waits), key=lambda each: each[0])
        begins = [each[0] for each in everything]
        for begin, granted, call in everything:
            earlier = before[call.process].begun_by(begin - 1)
            queued = max(begin, earlier[1] if earlier else 0) + SECOND
            if queued > granted or self.is_order_suspended(call, granted):
                continue
            self.counts["waits whose order among processes was checked"] += 1
            for other in everything[bisect.bisect_left(begins, queued):bisect.bisect_left(begins, granted)]:
                if other[1] < granted and other[2].process != call.process:
                    self.report(f"{other[2].name} was served before {call.name}, which was in the queue before", key,
                                begin, granted)

    def is_order_suspended(self, call: Call, granted: int) -> bool:
        """Whether a fault may have moved this caller back in the queue of the servers. A caller queues again if its
        place is lost with the session, or if the answer that grants the lock arrives too late to be used."""
        return self.history.settings["fifo"] and any(
            fault.began < granted and fault.ended > call.begin - 2 * SECOND and
            fault.target in ("server", "all links", f"process {call.process}") for fault in self.history.faults)

    def left_at(self, call: Call, key: str) -> int:
        hold = self.history.holds.get((call.name, key))
        release = self.releases.get(call.name)
        return max(call.end, hold.believed_until if hold else 0, release.end if release else 0)

    def possessed_until(self, call: Call, key: str) -> int:
        """When the servers have certainly removed what the acquire has stored."""
        hold = self.history.holds.get((call.name, key))
        killed = self.history.killed.get(call.process, NEVER)
        end = min(call.end, killed)
        late = NEVER if call.fields["ttl"] == 0 else end + self.history.slack
        if hold:
            release = self.releases.get(call.name)
            # The release of a lock that is already lost is not sent.
            if release and release.result == "done" and not (hold.lost and hold.lost[0] <= release.end):
                late = release.end
            elif call.fields["ttl"] != 0:
                late = max(min(hold.believed_until, killed), end) + self.history.slack
        elif call.result in not_carried_out and not self.has_fault(call.begin - 2 * SECOND, call.end):
            late = call.end
        for fault in self.history.faults:
            if fault.suspends == "locks_and_releases" and call.begin < fault.ended:
                late = max(late, fault.ended + self.history.slack)
        return late

    def has_fault(self, begin: int, end: int) -> bool:
        return any(fault.began < end and fault.ended > begin - SECOND for fault in self.history.faults)

    def may_overlook(self, call: Call) -> bool:
        """A quorum reports a lock only if a majority names the holder. A lock that is held
        by the smallest majority is not reported while one of these masters does not answer."""
        return self.history.settings["backend"] == "quorum" and self.has_fault(call.begin - 2 * SECOND, call.end)

    def may_be_old(self, call: Call) -> bool:
        """A member of an ensemble that was killed may show nodes that the others have removed."""
        if not any(fault.name == "members restarted" and fault.began < call.end for fault in self.history.faults):
            return False
        if self.history.settings["backend"] == "zookeeper":
            self.counts["answers of an ensemble with old nodes"] += 1
            return True
        return False

    def check_answers(self, key: str, holds: list) -> None:
        held = Latest([(each.start, each.until, each) for each in holds])
        possessed = Latest([(call.begin, self.possessed_until(call, key), call) for call in self.calls_of_key[key]
                            if call.what in acquires])
        for call in self.calls_of_key[key]:
            if call.what == "is_locked" and call.result == "false":
                self.counts["is_locked: false"] += 1
                hold = held.begun_by(call.begin)
                if hold and hold[1] > call.end and not self.may_overlook(call):
                    self.report(f"is_locked {call.name} is false, although {hold[2]} held the key", key, hold[0],
                                call.end)
            elif call.what == "is_locked" and call.result == "true":
                self.counts["is_locked: true"] += 1
                hold = possessed.begun_by(call.end)
                if (not hold or hold[1] < call.begin) and not self.may_be_old(call):
                    self.report(f"is_locked {call.name} is true, although nobody can hold the key", key, call.begin,
                                call.end)
            elif call.what == "is_held" and call.result == "false":
                hold = self.history.holds[call.fields["of"], key]
                if hold.until > call.end and hold.start < call.begin:
                    self.report(f"is_held {call.name} is false, although {hold} held the key", key, hold.start,
                                call.end)

    def check_listings(self) -> None:
        longest = {key: max((each.until - each.start for each in holds), default=0)
                   for key, holds in self.by_key.items()}
        starts = {key: [each.start for each in holds] for key, holds in self.by_key.items()}
        for call in self.history.calls.values():
            if call.what not in ("list", "purge", "break_lock") or call.result != "done":
                continue
            self.counts[call.what] += 1
            for each in call.answer["found"]:
                self.check_found(call, *each.split(" ", 1))
            if call.what == "purge":
                continue
            for key in call.keys or self.history.settings["keys"]:
                first = bisect.bisect_left(starts[key], call.begin - longest[key])
                last = bisect.bisect_right(starts[key], call.begin)
                for hold in self.by_key[key][first:last]:
                    if (hold.until > call.end and f"{key} {hold.acquire.name}" not in call.answer["found"] and
                            not self.may_overlook(call)):
                        self.report(f"{call.what} {call.name} lacks {hold}", key, hold.start, call.end)

    def check_found(self, call: Call, key: str, name: str) -> None:
        acquire = self.history.calls.get(name)
        if key not in self.history.settings["keys"]:
            return
        if not acquire or key not in acquire.keys:
            self.report(f"{call.what} {call.name} contains {name}, which has not acquired the key", key, call.begin,
                        call.end)
        elif acquire.begin > call.end or (
                # A lock that has expired stays until it is purged.
                call.what != "purge" and self.possessed_until(acquire, key) < call.begin and
                not self.may_be_old(call)):
            self.report(f"{call.what} {call.name} contains {name}, which cannot hold the key", key, acquire.begin,
                        call.end)
        elif call.what == "purge":
            hold = self.history.holds.get((name, key))
            self.counts["purged locks"] += 1
            # An earlier grant of the same acquire, which was not answered, may have been removed before this one.
            if hold and hold.until > call.end and hold.start < call.begin:
                self.report(f"purge {call.name} has removed {hold}, which was held", key, hold.start, call.end)

    def check_losses(self) -> None:
        for hold in self.history.holds.values():
            if not hold.lost:
                continue
            time, reason = hold.lost
            self.counts["lost: " + reason] += 1
            if reason not in ("taken", "broken") or time >= hold.deadline:
                continue
            if not self.explained(hold, time):
                self.report(f"{hold} was lost ({reason}), but nothing has removed it", hold.key, hold.start, time)

    def explained(self, hold: Hold, time: int) -> bool:
        """Whether a break or a fault has removed the lock before this time."""
        return any(each.begin <= time and self.may_remove(each, hold) for each in self.breaks[hold.key]) or any(
            fault.suspends != "none" and fault.began <= time and hold.acquire.begin < fault.ended
            for fault in self.history.faults)

    def check_releases(self) -> None:
        for call in self.releases.values():
            hold = self.history.holds.get((call.fields["of"], call.fields.get("key")))
            # If a request of the acquire was lost, the release is repeated, and the last answer counts.
            if call.result == "not_held" and hold and call.end < hold.deadline and not (
                    hold.lost or self.explained(hold, call.end) or
                    self.has_fault(hold.acquire.begin - 2 * SECOND, call.end)):
                self.report(f"release {call.name} of {hold} has found no lock", hold.key, hold.start, call.end)

    def check_writes(self) -> None:
        for call in self.history.calls.values():
            if call.what != "write":
                continue
            self.counts["fenced writes: " + call.result] += 1
            hold = self.history.holds[call.fields["of"], call.fields["key"]]
            if call.result == "rejected" and hold.until > call.end:
                self.report(f"the resource has refused the write {call.name} of {hold}, which held the key", hold.key,
                            hold.start, call.end)

    def timeline(self, key: str, begin: int, end: int) -> list:
        """What has happened to the key around this period, one line for each call and fault."""
        begin, end = max(begin, end - 5 * SECOND), end + SECOND // 10
        lines = []
        for call in self.calls_of_key[key]:
            hold = self.history.holds.get((call.name, key))
            last = max(min(call.end, self.history.killed.get(call.process, NEVER)), hold.believed_until if hold else 0)
            if call.begin <= end and last >= begin:
                text = f"process {call.process}: {call.what} {call.fields.get('of', '')} {call.name}: {call.result}"
                if hold:
                    text += f"; held {ms(hold.start - begin)} to {ms(hold.believed_until - begin)} ms, {hold}"
                    text += f", lost: {hold.lost[1]}" if hold.lost else ""
                elif "found" in call.answer:
                    text += f" {call.answer['found']}"
                lines.append((call.begin, call.end, text))
        for fault in self.history.faults:
            if fault.began <= end and fault.ended >= begin - SECOND:
                lines.append((fault.began, fault.ended, f"fault: {fault.name} ({fault.target})"))
        lines.sort(key=lambda each: each[0])
        return [f"{ms(first - begin):>10} {ms(last - begin):>10}  {text}"
                for first, last, text in lines[-max_timeline:]]

    def recovery(self) -> list:
        """Seconds from the end of each fault to the next grant of the process, or of any process."""
        grants = collections.defaultdict(list)
        for hold in self.history.holds.values():
            grants[hold.acquire.process].append(hold.start)
            grants[""].append(hold.start)
        for each in grants.values():
            each.sort()
        times = collections.defaultdict(list)
        for fault in self.history.faults:
            of_process = fault.target.startswith("process ") and fault.name != "process killed"
            starts = grants[fault.target.removeprefix("process ") if of_process else ""]
            number = bisect.bisect_left(starts, fault.ended)
            if number < len(starts):
                times[fault.name].append((starts[number] - fault.ended) / SECOND)
        return [f"{name}: {len(each)} times, recovery median {statistics.median(each):.2f} s, longest {max(each):.2f} s"
                for name, each in sorted(times.items())]


def ms(time: int) -> str:
    return "never" if abs(time) > NEVER // 2 else f"{time / 10**6:.1f}"


def main() -> None:
    checker = Checker(History(pathlib.Path(sys.argv[1])))
    violations = checker.run()
    for line in checker.recovery():
        print(f"prove: {line}")
    print(f"prove: {len(checker.history.calls)} calls, {len(checker.history.holds)} grants")
    for name, count in sorted(checker.counts.items()):
        print(f"prove: {name}: {count}")
    for text, key, begin, end in violations[:max_printed]:
        print(f"prove: violation: {key} {text}")
        if key and end:
            print("     begin ms     end ms")
            print("\n".join(checker.timeline(key, begin, end)))
    print(f"prove: {len(violations)} violations")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
