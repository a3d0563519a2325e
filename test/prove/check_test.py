#!/usr/bin/env python3
"""Tests of check.py with histories that were made by hand.

    test/prove/check_test.py
"""
import json
import pathlib
import tempfile
import unittest

import check

MS = 10**6


class Run:
    """Writes a history. Times are in milliseconds."""

    def __init__(self, fifo: bool = False):
        self.run = [{"t": 0, "backend": "redis", "fence": True, "fifo": fifo, "keys": ["k"], "semaphore": "none",
                     "max_holders": 2, "operation_timeout": 100}]
        self.clients: dict = {}
        self.number = 0

    def write(self, process: int, time: float, **line) -> None:
        self.clients.setdefault(process, []).append({"t": int(time * MS), **line})

    def begin(self, process: int, time: float, what: str, **fields) -> str:
        self.number += 1
        name = f"{process}-{self.number}"
        self.write(process, time, begin=what, call=name, **fields)
        return name

    def call(self, process: int, begin: float, end: float, what: str, result: str = "done", found: list = None,
             **fields) -> str:
        name = self.begin(process, begin, what, **fields)
        self.write(process, end, end=name, result=result, **({} if found is None else {"found": found}))
        return name

    def hold(self, process: int, begin: float, granted: float, left: float, fence: int, shared: bool = False,
             ttl: int = 1000, release: bool = True, key: str = "k") -> str:
        """An acquire, a use and a release that takes 1 ms. `left` is None if the process is killed."""
        name = self.call(process, begin, granted, "acquire", "granted", keys=[key], shared=shared, max_holders=0,
                         ttl=ttl)
        deadline = int((begin + ttl) * MS) if ttl else 0
        self.write(process, granted, held=name, key=key, fence=fence, deadline=deadline)
        if left is not None:
            self.write(process, left, left=name, key=key, deadline=deadline)
            if release:
                self.call(process, left, left + 1, "release", of=name, key=key)
        return name

    def lost(self, process: int, time: float, name: str, reason: str) -> None:
        self.write(process, time, lost=name, key="k", reason=reason)

    def fault(self, began: float, ended: float, suspends: str = "none", target: str = "server",
              name: str = "a fault") -> None:
        self.run.append({"t": int(ended * MS), "fault": name, "target": target, "suspends": suspends,
                         "began": int(began * MS)})

    def violations(self) -> list:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, lines in [("run", self.run), *((str(number), each) for number, each in self.clients.items())]:
                (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
            checker = check.Checker(check.History(folder))
            found = checker.run()
            for _, key, begin, end in found:
                checker.timeline(key, begin, end)
            checker.recovery()
            self.counts = checker.counts
            return [text for text, *_ in found]


class CheckTest(unittest.TestCase):
    def passes(self, run: Run) -> None:
        self.assertEqual(run.violations(), [])

    def fails(self, run: Run, text: str) -> None:
        found = run.violations()
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def test_holds_one_after_the_other_pass(self):
        run = Run()
        run.hold(1, 0, 1, 5, fence=1)
        run.hold(2, 0, 6, 9, fence=2)
        self.passes(run)

    def test_overlapping_exclusive_holds_fail(self):
        run = Run()
        run.hold(1, 0, 1, 5, fence=1)
        run.hold(2, 0, 4, 9, fence=2)
        self.fails(run, "two holds at once")

    def test_overlapping_shared_holds_pass(self):
        run = Run()
        run.hold(1, 0, 1, 5, fence=2, shared=True)
        run.hold(2, 0, 4, 9, fence=1, shared=True)
        self.passes(run)

    def test_shared_hold_during_an_exclusive_one_fails(self):
        run = Run()
        run.hold(1, 0, 1, 9, fence=1)
        run.hold(2, 0, 4, 5, fence=2, shared=True)
        self.fails(run, "two holds at once")

    def test_hold_ends_at_its_deadline(self):
        run = Run()
        run.hold(1, 0, 1, 300, fence=1, ttl=200)
        run.hold(2, 0, 201, 250, fence=2)
        self.passes(run)

    def test_hold_ends_when_its_process_is_killed(self):
        run = Run()
        run.hold(1, 0, 1, None, fence=1)
        run.run.append({"t": 3 * MS, "killed": 1})
        run.hold(2, 0, 4, 5, fence=2)
        self.passes(run)

    def test_hold_ends_when_it_is_lost(self):
        run = Run()
        name = run.hold(1, 0, 1, 9, fence=1)
        run.lost(1, 3, name, "session")
        run.hold(2, 0, 4, 5, fence=2)
        self.passes(run)

    def test_more_holders_than_the_limit_fail(self):
        run = Run()
        run.run[0]["semaphore"] = "k"
        for fence in range(1, 4):
            run.hold(fence, 0, fence, 9, fence=fence, shared=True)
        self.fails(run, "3 shared holds at once")

    def test_repeated_fence_fails(self):
        run = Run()
        run.hold(1, 0, 1, 2, fence=7)
        run.hold(2, 0, 4, 5, fence=7)
        self.fails(run, "the fence has not grown")

    def test_lower_fence_after_lost_data_fails(self):
        run = Run()
        run.hold(1, 0, 1, 2, fence=7)
        run.fault(10, 20, "locks")
        run.hold(2, 2000, 2001, 2002, fence=6)
        self.fails(run, "the fence has not grown")

    def test_lower_fence_than_that_of_a_suspended_hold_fails(self):
        run = Run()
        run.hold(1, 0, 1, 2, fence=5)
        run.fault(10, 20, "locks")
        run.hold(1, 12, 15, 18, fence=9)
        run.hold(2, 2000, 2001, 2002, fence=7)
        self.fails(run, "the fence has not grown")

    def test_suspended_hold_with_a_lower_fence_passes(self):
        run = Run()
        run.hold(1, 0, 1, 2, fence=7)
        run.fault(10, 20, "locks")
        run.hold(2, 15, 25, 26, fence=6)
        self.passes(run)

    def test_lock_that_was_lost_with_the_data_is_suspended(self):
        run = Run()
        run.hold(1, 0, 1, 500, fence=1)
        run.fault(10, 20, "locks")
        run.hold(2, 30, 31, 40, fence=2)
        self.passes(run)
        self.assertEqual(run.counts["holds suspended by: a fault"], 1)

    def test_lock_that_was_granted_after_the_data_were_lost_is_not_suspended(self):
        run = Run()
        run.fault(10, 20, "locks")
        run.hold(1, 30, 31, 500, fence=1)
        run.hold(2, 40, 41, 50, fence=2)
        self.fails(run, "two holds at once")

    def test_restart_that_keeps_the_data_suspends_nothing(self):
        run = Run()
        run.hold(1, 0, 1, 500, fence=1)
        run.fault(10, 20)
        run.hold(2, 30, 31, 40, fence=2)
        self.fails(run, "two holds at once")

    def test_later_caller_of_a_process_that_is_served_first_fails(self):
        run = Run()
        run.hold(1, 0, 10, 11, fence=2)
        run.hold(1, 1, 5, 6, fence=1)
        self.fails(run, "was served before")

    def test_fault_excuses_the_order_of_a_process_with_fifo(self):
        for target in ("server", "all links", "process 1"):
            run = Run(fifo=True)
            run.hold(1, 0, 3000, 3001, fence=2, ttl=9000)
            run.hold(1, 70, 2000, 2001, fence=1, ttl=9000)
            self.fails(run, "which has called before")
            run.fault(160, 1900, target=target)
            self.passes(run)
            self.assertEqual(run.counts["waits that a fault may have moved back in the queue"], 2)

    def test_fault_does_not_excuse_the_order_of_a_process_without_fifo(self):
        run = Run()
        run.hold(1, 0, 3000, 3001, fence=2, ttl=9000)
        run.hold(1, 70, 2000, 2001, fence=1, ttl=9000)
        run.fault(160, 1900)
        self.fails(run, "which has called before")

    def test_fault_elsewhere_does_not_excuse_the_order_of_a_process(self):
        for began, ended, target in [(160, 1900, "process 2"), (3100, 3200, "server")]:
            run = Run(fifo=True)
            run.hold(1, 0, 3000, 3001, fence=2, ttl=9000)
            run.hold(1, 70, 2000, 2001, fence=1, ttl=9000)
            run.fault(began, ended, target=target)
            self.fails(run, "which has called before")

    def test_caller_that_queued_again_does_not_excuse_the_callers_before_it(self):
        run = Run(fifo=True)
        run.fault(6100, 6200, target="process 1")
        run.hold(1, 0, 6000, 6001, fence=2, ttl=9000)
        run.hold(1, 4000, 6500, 6501, fence=3, ttl=9000)
        run.hold(1, 4100, 5000, 5001, fence=1, ttl=9000)
        self.fails(run, "served before 1-1,")

    def test_later_caller_of_another_process_may_be_served_first(self):
        run = Run()
        run.hold(1, 0, 10, 11, fence=2)
        run.hold(2, 1, 5, 6, fence=1)
        self.passes(run)

    def test_later_caller_of_another_process_must_wait_with_fifo(self):
        run = Run(fifo=True)
        run.hold(1, 0, 3000, 3001, fence=2, ttl=9000)
        run.hold(2, 1500, 2000, 2001, fence=1, ttl=9000)
        self.fails(run, "was in the queue before")

    def test_fault_excuses_the_order_of_processes(self):
        run = Run(fifo=True)
        run.hold(1, 0, 3000, 3001, fence=2, ttl=9000)
        run.hold(2, 1500, 2000, 2001, fence=1, ttl=9000)
        run.fault(100, 200)
        self.passes(run)

    def test_is_locked_during_a_hold(self):
        run = Run()
        run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "is_locked", "true", key="k")
        run.call(2, 45, 60, "is_locked", "false", key="k")
        self.passes(run)
        run.call(2, 20, 30, "is_locked", "false", key="k")
        self.fails(run, "is false")

    def test_is_locked_without_a_hold(self):
        run = Run()
        run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 60, 61, "is_locked", "false", key="k")
        self.passes(run)
        run.call(2, 62, 63, "is_locked", "true", key="k")
        self.fails(run, "is true")

    def test_lock_that_was_not_released_may_remain_for_its_ttl(self):
        run = Run()
        run.hold(1, 0, 1, 50, fence=1, release=False)
        run.call(2, 62, 63, "is_locked", "true", key="k")
        self.passes(run)
        run.call(2, 9000, 9001, "is_locked", "true", key="k")
        self.fails(run, "is true")

    def test_list_without_a_holder_fails(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "list", found=["k " + name])
        self.passes(run)
        run.call(2, 10, 20, "list", found=[])
        self.fails(run, "lacks")

    def test_list_of_a_lock_that_was_released_fails(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 60, 70, "list", found=["k " + name])
        self.fails(run, "cannot hold the key")

    def test_member_that_was_restarted_may_list_old_locks(self):
        run = Run()
        run.run[0]["backend"] = "zookeeper"
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 60, 70, "list", found=["k " + name])
        self.fails(run, "cannot hold the key")
        run.fault(51, 55, name="members restarted")
        self.passes(run)
        self.assertEqual(run.counts["answers of an ensemble with old nodes"], 1)

    def test_purge_of_a_live_lock_fails(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "purge", found=["k " + name])
        self.fails(run, "which was held")

    def test_break_ends_the_hold_that_it_names(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "break_lock", key="k", found=["k " + name])
        run.hold(3, 0, 15, 18, fence=2)
        self.passes(run)

    def test_break_does_not_excuse_the_loss_of_a_later_hold(self):
        run = Run()
        run.call(2, 10, 20, "break_lock", "outcome_unknown", key="k")
        name = run.hold(1, 30, 31, 50, fence=1)
        run.lost(1, 40, name, "taken")
        self.fails(run, "nothing has removed it")

    def test_break_without_an_answer_excuses_the_loss_of_an_earlier_hold(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "break_lock", "outcome_unknown", key="k")
        run.lost(1, 40, name, "taken")
        self.passes(run)

    def test_release_that_finds_no_lock_fails(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1, release=False)
        run.call(1, 50, 51, "release", "not_held", of=name, key="k")
        self.fails(run, "has found no lock")

    def test_refused_write_of_a_holder_fails(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.call(1, 10, 12, "write", "rejected", of=name, key="k", fence=1)
        self.fails(run, "has refused the write")

    def test_refused_write_after_the_hold_passes(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1, ttl=30)
        run.call(1, 29, 31, "write", "rejected", of=name, key="k", fence=1)
        self.passes(run)

    def test_purge_may_return_an_earlier_grant_of_the_same_acquire(self):
        run = Run()
        name = run.hold(1, 0, 15, 50, fence=1)
        run.call(2, 10, 20, "purge", found=["k " + name])
        self.passes(run)

    def test_release_of_a_lost_lock_proves_nothing(self):
        run = Run()
        name = run.hold(1, 0, 1, 50, fence=1)
        run.lost(1, 40, name, "expired")
        run.call(2, 60, 70, "list", found=["k " + name])
        self.passes(run)

    def test_quorum_may_overlook_a_lock_while_a_master_is_down(self):
        run = Run()
        run.run[0]["backend"] = "quorum"
        run.hold(1, 0, 1, 50, fence=1)
        run.call(2, 10, 20, "is_locked", "false", key="k")
        self.fails(run, "is false")
        run.fault(5, 30)
        self.passes(run)

    def test_break_on_a_quorum_may_remove_a_lock_that_is_being_granted(self):
        run = Run()
        name = run.hold(1, 0, 15, 50, fence=1)
        run.lost(1, 40, name, "taken")
        run.hold(3, 60, 61, 62, fence=2)
        run.call(2, 10, 20, "break_lock", key="k", found=[])
        self.fails(run, "nothing has removed it")
        run.run[0]["backend"] = "quorum"
        self.passes(run)

    def test_residue_and_failed_processes_fail(self):
        for line, text in [({"t": 9, "residue": ["a key"]}, "remains on the servers"),
                           ({"t": 9, "ended": 1, "status": 256}, "has failed")]:
            run = Run()
            run.hold(1, 0, 1, 5, fence=1)
            run.run.append(line)
            self.fails(run, text)

    def test_key_that_was_never_held_fails(self):
        self.fails(Run(), "was never held")

    def test_key_whose_only_hold_is_suspended_was_held(self):
        run = Run()
        run.call(2, 5, 30, "break_lock", "outcome_unknown", key="k")
        run.hold(1, 0, 10, 20, fence=1)
        self.passes(run)
        self.assertEqual(run.counts["holds suspended by: break_lock"], 1)


if __name__ == "__main__":
    unittest.main()
