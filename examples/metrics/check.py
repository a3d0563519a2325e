"""Reads metrics with the parser of Prometheus's client library and checks them.

    check.py URL TENANTS REPORTS

URL is served by the example, after each of the two workers of each tenant has made this number of reports.
"""

import math
import sys
import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

url, tenants, reports = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
max_prefixes = 100
client = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fail(text):
    sys.exit(f"FAILED: {text}")


def expect(what, expected, actual):
    if expected != actual:
        fail(f"{what}: expected {expected}, got {actual}")
    print(f"ok: {what}: {actual}")


def status_of(request):
    try:
        return client.open(request, timeout=30).status
    except urllib.error.HTTPError as error:
        return error.code


with client.open(url, timeout=30) as answer:
    expect("content type", "text/plain; version=0.0.4; charset=utf-8", answer.headers["Content-Type"])
    text = answer.read().decode()
expect("another path", 404, status_of(url.replace("/metrics", "/")))
expect("another method", 405, status_of(urllib.request.Request(url, method="DELETE")))

samples = {}
types = {}
for family in text_string_to_metric_families(text):
    if family.type not in ("counter", "gauge", "histogram") or not family.documentation:
        fail(f"{family.name} has the type {family.type} and the text '{family.documentation}'")
    types[family.name] = family.type
    for sample in family.samples:
        identity = (sample.name, frozenset(sample.labels.items()))
        if identity in samples:
            fail(f"{identity} occurs twice")
        samples[identity] = sample.value


def value(name, **labels):
    return samples.get((name, frozenset(labels.items())))


def total(name, **labels):
    wanted = set(labels.items())
    return sum(each for (found, has), each in samples.items() if found == name and wanted <= has)


def check_histogram(name, prefix):
    """The buckets ascend, and the last one contains all values."""
    buckets = []
    for (found, labels), count in samples.items():
        labels = dict(labels)
        if found == f"{name}_bucket" and labels["prefix"] == prefix:
            buckets.append((float(labels["le"]), count))
    buckets.sort()
    count = value(f"{name}_count", prefix=prefix)
    bounds = [bound for bound, _ in buckets]
    counts = [count for _, count in buckets]
    if not math.isinf(bounds[-1]) or len(bounds) < 2 or len(set(bounds)) != len(bounds):
        fail(f"{name} of {prefix} has the bounds {bounds}")
    if counts != sorted(counts) or counts[-1] != count:
        fail(f"{name} of {prefix} has the buckets {buckets} and the count {count}")
    # Each value lies between the bounds of its bucket, and so does the sum.
    each = [later - earlier for earlier, later in zip([0] + counts, counts)]
    least = sum(number * bound for number, bound in zip(each, [0] + bounds))
    most = sum(number * bound for number, bound in zip(each, bounds) if number)
    if not least <= value(f"{name}_sum", prefix=prefix) <= most:
        fail(f"{name} of {prefix} has a sum that its buckets exclude")


# --- the operations of the example ------------------------------------------------------------------------------------

made = 2 * tenants * reports
expect("granted", made + 1, total("colock_acquires_total", outcome="granted"))
expect("exhausted", 1, total("colock_acquires_total", outcome="exhausted"))
expect("other ends", 0, sum(total("colock_acquires_total", outcome=each) for each in ("cancelled", "shut_down", "failed")))
expect("releases", made, total("colock_releases_total"))
expect("losses", 1, total("colock_losses_total"))
expect("expired", 1, total("colock_losses_total", reason="expired"))
expect("wait times", made + 1, total("colock_wait_seconds_count"))
expect("hold times", made + 1, total("colock_hold_seconds_count"))
if total("colock_hold_seconds_sum") < 0.005 * made + 0.2:
    fail("the hold times are too short")
if total("colock_waits_total") < tenants:
    fail("the second workers did not wait")
for gauge in ("colock_held", "colock_waiting", "colock_settling"):
    expect(gauge, 0, value(gauge))
expect("backend", 1, value("colock_backend_up", backend="memory"))
expect("warnings", 0, value("colock_warnings_total", backend="memory"))

# --- the labels -------------------------------------------------------------------------------------------------------

prefixes = {dict(labels)["prefix"] for _, labels in samples if "prefix" in dict(labels)}
expected = {"forgotten"} | {f"tenant{n}" for n in range(tenants)}
if len(expected) <= max_prefixes:
    expect("prefixes", sorted(expected), sorted(prefixes))
    for prefix in expected - {"forgotten"}:
        expect(f"granted to {prefix}", 2 * reports, value("colock_acquires_total", prefix=prefix, outcome="granted"))
    expect("loss", 1, value("colock_losses_total", prefix="forgotten", reason="expired"))
else:
    expect("number of prefixes", max_prefixes + 1, len(prefixes))
    further = len(expected) - max_prefixes
    expect("granted to others", 2 * reports * further, value("colock_acquires_total", prefix="other", outcome="granted"))

# --- the histograms ---------------------------------------------------------------------------------------------------

expect("histograms", ["colock_hold_seconds", "colock_wait_seconds"],
       sorted(name for name, kind in types.items() if kind == "histogram"))
for prefix in prefixes:
    check_histogram("colock_wait_seconds", prefix)
    check_histogram("colock_hold_seconds", prefix)
print(f"ok: {len(samples)} samples, {len(text)} bytes")
