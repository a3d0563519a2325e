# Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
import argparse
import asyncio
import json
import time

from redis.asyncio import Redis, RedisCluster


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--ttl", type=int, default=30000)
    parser.add_argument("--keys", type=int, default=6400)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--cluster", action="store_true")
    return parser.parse_args()


async def main(args):
    # A connection of redis-py carries one command at a time. The pool opens a connection for each pair in flight, and on
    # a cluster one of each node.
    client = (RedisCluster if args.cluster else Redis)(host=args.host, port=args.port)
    pairs = 0
    stopping = False
    max_pair_time = 0.0

    # Each worker acquires and releases its own keys in turn, so there is no contention. If there are fewer keys than
    # workers, each worker uses one key, which it shares with others.
    async def work(first):
        nonlocal pairs, max_pair_time
        key = first % args.keys
        while not stopping:
            start = time.monotonic()
            lock = client.lock(f"load:{key}", timeout=args.ttl / 1000, thread_local=False)
            if not await lock.acquire():
                raise RuntimeError("not acquired")
            await lock.release()
            pairs += 1
            max_pair_time = max(max_pair_time, time.monotonic() - start)
            key = key + args.concurrency if key + args.concurrency < args.keys else first % args.keys

    workers = [asyncio.create_task(work(first)) for first in range(args.concurrency)]
    await asyncio.sleep(min(args.seconds, 0.5))
    max_pair_time = 0.0
    before, cpu, start = pairs, time.process_time(), time.monotonic()
    await asyncio.sleep(args.seconds)
    counted = pairs - before
    cpu, elapsed = time.process_time() - cpu, time.monotonic() - start
    stopping = True
    await asyncio.gather(*workers)
    await client.aclose()
    answer = {
        "pairs_per_second": counted / elapsed,
        "cpu_us_per_pair": cpu * 1e6 / max(counted, 1),
        "pairs": pairs,
        "max_pair_time_ms": max_pair_time * 1000,
    }
    print(json.dumps(answer))


asyncio.run(main(options()))
