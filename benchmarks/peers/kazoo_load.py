# Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#
# Uses one thread for each worker, and one client for all of them. Options and output are the same as in load.js.
import argparse
import json
import threading
import time

from kazoo.client import KazooClient

parser = argparse.ArgumentParser()
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=2181)
parser.add_argument("--ttl", type=int, default=30000)
parser.add_argument("--keys", type=int, default=6400)
parser.add_argument("--concurrency", type=int, default=64)
parser.add_argument("--seconds", type=float, default=2.0)
parser.add_argument("--begins", type=int)
args = parser.parse_args()

client = KazooClient(hosts="{}:{}".format(args.host, args.port), timeout=15)
client.start()
stopping = False


class Worker(threading.Thread):
    def __init__(self, number):
        super().__init__()
        # If there are fewer keys than workers, each worker uses one key, which it shares with others.
        keys = range(number % args.keys, args.keys, args.concurrency)
        self.locks = [client.Lock("/kazoo/load:{}".format(key)) for key in keys]
        self.pairs = 0
        self.max_pair_time = 0.0

    def run(self):
        while not stopping:
            start = time.monotonic()
            lock = self.locks[self.pairs % len(self.locks)]
            lock.acquire()
            lock.release()
            self.pairs += 1
            self.max_pair_time = max(self.max_pair_time, time.monotonic() - start)


def pairs():
    return sum(each.pairs for each in workers)


workers = [Worker(number) for number in range(args.concurrency)]
for each in workers:
    each.start()
time.sleep(max(0.0, args.begins - time.time()) if args.begins else args.seconds)
for each in workers:
    each.max_pair_time = 0.0
before, cpu, start = pairs(), time.process_time(), time.monotonic()
time.sleep(args.seconds)
counted = pairs() - before
cpu, elapsed = time.process_time() - cpu, time.monotonic() - start
stopping = True
for each in workers:
    each.join()
answer = {
    "pairs_per_second": counted / elapsed,
    "cpu_us_per_pair": cpu * 1e6 / max(counted, 1),
    "pairs": pairs(),
    "max_pair_time_ms": max(each.max_pair_time for each in workers) * 1000,
}
client.stop()
print(json.dumps(answer))
