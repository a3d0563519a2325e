#!/usr/bin/env python3
"""Draws the charts of the benchmark pages and writes the summary tables.

Reads the tables of docs/benchmarks/BACKEND.md, which scripts/bench.sh --docs writes. Writes the charts
docs/benchmarks/*.svg, the summary in docs/benchmarks.md and the missed limits in docs/benchmarks/method.md.
The generated text is between the lines "<!-- generated: NAME -->" and "<!-- /generated -->".
"""
import argparse
import html
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / 'docs'
PAGES = ['memory', 'redis', 'zookeeper', 'mongodb']
TITLES = {'redis': 'Redis', 'zookeeper': 'ZooKeeper', 'mongodb': 'MongoDB'}
# The load of each backend that the overview shows: neither the lightest nor the heaviest one.
OVERVIEW = {'redis': '64 in flight', 'zookeeper': '16 in flight', 'mongodb': '8 in flight'}

# Loads that are only on the pages of the backends.
DETAILS = ['1000 contend for 125 keys', '4 processes contend for one key']

# Programs that do the same work without a lock library.
BASELINES = ['raw', "driver's loop", 'libmongoc on threads', 'floor']
COLORS = {
    'colock': '#d9480f',
    'colock, shared': '#f0a07c',
    'colock, two adapters': '#f6c5ae',
    'raw': '#868e96',
    'floor': '#868e96',
    'libmongoc on threads': '#868e96',
    "driver's loop": '#b4bac0',
    'locco': '#1c7ed6',
    'ioredis-lock': '#0ca678',
    'redlock': '#7048e8',
    'redis-py': '#b08900',
    'Curator': '#0b7285',
    'kazoo': '#74a816',
}
OTHER_COLOR = '#495057'

RATE = re.compile(r'^(.*), (?:pairs|hand-offs) per second$')
LOAD = re.compile(r'^\w+: (\d+ (?:in flight|contend for \d+ keys|callers in one process contend for one key'
                  r'|processes contend for one key))\b')


def tables(page):
    """Yields (title, [(name, measured, limit)]) for each table of a page."""
    title, rows = None, []
    for line in (DOCS / 'benchmarks' / f'{page}.md').read_text().splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')] if line.startswith('|') else []
        if len(cells) == 3 and cells[1:] == ['measured', 'limit']:
            title, rows = cells[0], []
        elif title and len(cells) == 3:
            if not cells[0].startswith('---'):
                rows.append(tuple(cells))
        elif title:
            yield title, rows
            title = None
    if title:
        yield title, rows


def number(text):
    return float(text.removeprefix('at least ').split()[0])


def loads(page):
    """Returns {load: {library: pairs per second}} and {load: {'A / B': ratio}}."""
    rates, ratios = {}, {}
    for title, rows in tables(page):
        if not (load := LOAD.match(title)):
            continue
        rates[load[1]] = {rate[1]: number(value) for name, value, _ in rows if (rate := RATE.match(name))}
        ratios[load[1]] = {name.removesuffix(', the best peer'): value for name, value, _ in rows if ' / ' in name}
    if not rates:
        print(f'benchmark_charts: warning: docs/benchmarks/{page}.md has no table of a load', file=sys.stderr)
    return rates, ratios


def draw(title, subtitle, groups, unit):
    """Returns an SVG chart. Each group has a scale of its own, and a library has the same color in all groups."""
    left, length, width, line = 190, 420, 760, 22
    parts, y = [], 62
    for group, bars in groups:
        parts.append(f'<text x="16" y="{y + 16}" font-weight="bold">{html.escape(group)}</text>')
        y += 26
        longest = max(bars.values())
        for name in sorted(bars, key=lambda name: (name in BASELINES, not name.startswith('colock'))):
            weight = ' font-weight="bold"' if name == 'colock' else ''
            size = max(2, round(bars[name] / longest * length))
            value = f'{bars[name]:,.0f}' if bars[name] >= 100 else f'{bars[name]:.3g}'
            parts.append(
                f'<text x="{left - 10}" y="{y + 14}" text-anchor="end"{weight}>{html.escape(name)}</text>\n'
                f'<rect x="{left}" y="{y + 1}" width="{size}" height="17" rx="2"'
                f' fill="{COLORS.get(name, OTHER_COLOR)}"/>\n'
                f'<text x="{left + size + 8}" y="{y + 14}"{weight}>{value} {unit}</text>')
            y += line
        y += 10
    # The background is explicit, so that the text is readable on a dark page.
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 6}" viewBox="0 0 {width} {y + 6}"'
            f' font-family="sans-serif" font-size="13" fill="#1f2328">\n'
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{y + 5}" rx="6" fill="#ffffff" stroke="#d0d7de"/>\n'
            f'<text x="16" y="26" font-size="15" font-weight="bold">{html.escape(title)}</text>\n'
            f'<text x="16" y="46" fill="#57606a">{html.escape(subtitle)}</text>\n' + '\n'.join(parts) + '\n</svg>\n')


def memory_groups():
    for title, rows in tables('memory'):
        if title.startswith('Uncontended'):
            groups = {}
            for name, value, _ in rows:
                load, what = name.rsplit(', ', 1)
                if what != 'ratio':
                    groups.setdefault(load, {})['colock' if what == 'acquire+release' else what] = number(value)
            return list(groups.items())
    print('benchmark_charts: warning: docs/benchmarks/memory.md has no uncontended table', file=sys.stderr)
    return []


def charts():
    scale = 'Longer is faster. Each group has its own scale. Gray: the same commands without a lock library.'
    overview = []
    for page, title in TITLES.items():
        rates, _ = loads(page)
        yield f'{page}.svg', draw(f'{title}: pairs of acquire and release per second', scale, list(rates.items()), '/s')
        load = OVERVIEW[page]
        if load in rates:
            overview.append((f'{title}, {load}, uncontended', rates[load]))
    yield 'overview.svg', draw('Pairs of acquire and release per second', scale, overview, '/s')
    yield 'memory.svg', draw('Memory: CPU time of an uncontended acquire and release',
                             'Shorter is faster. Each group has its own scale. Gray: the least work of a lock.',
                             memory_groups(), 'ns')


def summary():
    lines = ['| load | colock | fastest other library | ratio | ratio to the commands alone |',
             '|---|---:|---|---:|---:|']
    for page, title in TITLES.items():
        rates, ratios = loads(page)
        for load, libraries in rates.items():
            peers = {name: rate for name, rate in libraries.items()
                     if not name.startswith('colock') and name not in BASELINES}
            if not peers or load in DETAILS:
                continue
            best = max(peers, key=peers.get)
            # The recorded ratios are medians over rounds, and so can differ from the quotient of the rates.
            ratio = ratios[load][f'colock / {best}']
            alone = next((ratios[load][f'colock / {name}'] for name in ('raw', 'libmongoc on threads')
                          if f'colock / {name}' in ratios[load]), '')
            lines.append(f'| {title}, {load} | {libraries["colock"]:,.0f} /s | {best}, {peers[best]:,.0f} /s'
                         f' | {ratio} | {alone} |')
    return lines


def memory():
    groups = dict(memory_groups())
    if '1 key' not in groups:
        return []
    lock, floor = groups['1 key']['colock'], groups['1 key']['floor']
    return [f'In memory, an uncontended pair on one key takes {lock:.3g} ns of CPU time. The *floor*, the least work',
            f'that an acquire and a release can do behind an interface, takes {floor:.3g} ns.']


def missed():
    lines = ['| page | row | measured | limit |', '|---|---|---:|---:|']
    for page in PAGES:
        for title, rows in tables(page):
            for name, value, limit in rows:
                if not limit:
                    continue
                too_low = limit.startswith('at least ') and number(value) < number(limit)
                if too_low or not limit.startswith('at least ') and number(value) > number(limit):
                    load = LOAD.match(title)
                    row = f'{load[1]}: {name}' if load else name
                    lines.append(f'| [{page}]({page}.md) | {row} | {value} | {limit} |')
    return lines


def with_block(text, page, name, lines):
    pattern = re.compile(rf'(<!-- generated: {name} -->\n).*?(<!-- /generated -->)', re.S)
    if not pattern.search(text):
        sys.exit(f'benchmark_charts: error: {page} has no place for "{name}"')
    return pattern.sub(lambda found: found[1] + '\n'.join(lines) + '\n' + found[2], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='write nothing; exit with 1 if a file is out of date')
    check = parser.parse_args().check
    files = {DOCS / 'benchmarks' / name: text for name, text in charts()}
    for page, name, lines in ((DOCS / 'benchmarks.md', 'summary', summary()),
                              (DOCS / 'benchmarks.md', 'memory', memory()),
                              (DOCS / 'benchmarks' / 'method.md', 'missed limits', missed())):
        files[page] = with_block(files.get(page) or page.read_text(), page, name, lines)
    status = 0
    for path, text in files.items():
        if path.exists() and path.read_text() == text:
            continue
        status = 1
        if check:
            print(f'benchmark_charts: {path.relative_to(DOCS.parent)} is out of date', file=sys.stderr)
        else:
            path.write_text(text)
    return status if check else 0


sys.exit(main())
