# Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#
# redis_py.py REDIS_PORT server|cluster: implements the protocol that speak.js describes.
import sys
import time

from redis import Redis, RedisCluster
from redis.exceptions import LockNotOwnedError

client = (RedisCluster if sys.argv[2] == "cluster" else Redis)(host="127.0.0.1", port=int(sys.argv[1]))
held = None


def take_one(key, ttl):
    lock = client.lock(key, timeout=ttl / 1000)
    return lock if lock.acquire(blocking=False) else None


def release_one(lock):
    try:
        lock.release()
        return True
    except LockNotOwnedError:
        return False


def take(key, ttl):
    global held
    taken = take_one(key, int(ttl))
    held = taken or held
    return "granted" if taken else "busy"


def release():
    return "released" if release_one(held) else "not ours"


def add(key, number, times):
    for _ in range(int(times)):
        while not (lock := take_one(key, 60000)):
            time.sleep(0.002)
        value = int(client.get(number) or 0)
        time.sleep(0.001)
        client.set(number, value + 1)
        if not release_one(lock):
            return "failed: released by somebody else"
        time.sleep(0.002)
    return "added"


for line in sys.stdin:
    verb, *words = line.split()
    try:
        answer = {"take": take, "release": release, "add": add}[verb](*words)
    except Exception as problem:
        answer = f"failed: {problem!r}"
    print(answer.replace("\n", " "), flush=True)
