# Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#
# kazoo_lock.py ZOOKEEPER_PORT: accepts the commands of Curator.java, without readers and writers. The kind "plain" is a
# lock of kazoo that ignores the nodes of other libraries.
import sys
from concurrent.futures import ThreadPoolExecutor

from kazoo.client import KazooClient

client = KazooClient(hosts="127.0.0.1:" + sys.argv[1])
client.start()
askers = {}


def carry_out(verb, who, *rest):
    if verb == "take":
        # With the pattern the lock shares the queue of Curator's locks.
        patterns = [] if rest[1] == "plain" else ["-lock-"]
        lock = client.Lock(rest[0], who, extra_lock_patterns=patterns)
        thread = ThreadPoolExecutor(1)
        askers[who] = (lock, thread, thread.submit(lock.acquire))
        return "asked"
    lock, thread, granted = askers[who]
    if verb == "await":
        return "granted" if granted.result() else "failed: not granted"
    thread.submit(lock.release).result()
    return "released"


for line in sys.stdin:
    try:
        answer = carry_out(*line.split())
    except Exception as problem:
        answer = "failed: {!r}".format(problem)
    print(answer, flush=True)
