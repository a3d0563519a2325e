#!/usr/bin/env python3
"""Draws the pictures of docs/command.md from the real output of the command on a terminal.

    scripts/servers.sh run redis -- scripts/command_pictures.py build/release/src/command/colock

Writes docs/command/*.svg. The lines of each picture are run by script(1) in a shell, one after the other, on the Redis
server of COLOCK_TEST_REDIS. A picture whose subcommand does not exist yet is left out.
"""
import argparse
import html
import os
import pathlib
import re
import shlex
import subprocess

DOCS = pathlib.Path(__file__).resolve().parent.parent / 'docs'
WIDTH = 96
CHARACTER, LINE = 7.8, 18
COLORS = {'31': '#ff7b72', '32': '#7ee787', '33': '#e3b341', '36': '#79c0ff'}

# Name of the picture: commands that run before it in the background, and the lines that it shows.
PICTURES = {
    'run': (['colock run nightly -- sleep 20'],
            ['colock run nightly --timeout 3s -- ./backup.sh', 'echo $?',
             '''colock run hourly -c 'echo "$COLOCK_KEY, fence $COLOCK_FENCE"' ''', 'echo $?']),
    'ls': (['colock run nightly --comment backup -- sleep 20',
            'colock run report:7 --max-holders 2 --owner web-3 -- sleep 20',
            'colock run report:7 --max-holders 2 --owner web-4 -- sleep 20',
            'colock run db:orders --key db:stock --ttl 1m -- sleep 20'],
           ['colock ls']),
    'doctor': ([], ['colock doctor']),
}


def run(line, environment):
    """Returns what a terminal shows."""
    result = subprocess.run(['script', '-qec', line, '/dev/null'], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, check=False)
    return result.stdout.decode().replace('\r\n', '\n')


def shown(text):
    """Replaces the lines that were written again in place by their last state."""
    lines = []
    for line in text.split('\n'):
        states = [state for state in line.split('\r\x1b[K') if state]
        progress = [state for state in states if state.startswith('waiting for')]
        rest = [state for state in states if state not in progress]
        lines += progress[-1:] + (rest or ([] if progress else ['']))
    return lines


def spans(line):
    """Yields (text, bold, colour) for a line with escape sequences."""
    bold, color = False, None
    for part in re.split(r'(\x1b\[[0-9;]*m)', line):
        if match := re.fullmatch(r'\x1b\[([0-9;]*)m', part):
            for code in match[1].split(';'):
                if code in ('', '0'):
                    bold, color = False, None
                elif code == '1':
                    bold = True
                else:
                    color = COLORS.get(code, color)
        elif part:
            yield part, bold, color


def wrap(parts):
    """Splits the parts of a line at the width of the terminal."""
    rows, column = [[]], 0
    for text, bold, color in parts:
        while text:
            if column == WIDTH:
                rows.append([])
                column = 0
            piece, text = text[:WIDTH - column], text[WIDTH - column:]
            rows[-1].append((column, piece, bold, color))
            column += len(piece)
    return rows


def draw(lines):
    rows = [row for line in lines for row in wrap(spans(line))]
    width, height = round(WIDTH * CHARACTER) + 32, len(rows) * LINE + 24
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" fill="#e6edf3">')
    yield f'<rect width="{width}" height="{height}" rx="6" fill="#0d1117"/>'
    for number, row in enumerate(rows):
        for column, text, bold, color in row:
            if not text.strip():
                continue
            style = (' font-weight="bold"' if bold else '') + (f' fill="{color}"' if color else '')
            yield (f'<text x="{16 + column * CHARACTER:.1f}" y="{28 + number * LINE}" xml:space="preserve" '
                   f'textLength="{len(text) * CHARACTER:.1f}"{style}>{html.escape(text, quote=False)}</text>')
    yield '</svg>'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('colock', help='the executable')
    colock = pathlib.Path(parser.parse_args().colock).resolve()
    environment = os.environ | {'COLOCK_BACKEND': os.environ['COLOCK_TEST_REDIS'], 'TERM': 'xterm-256color',
                                'PATH': f'{colock.parent}:{os.environ["PATH"]}'}
    environment.pop('NO_COLOR', None)
    known = subprocess.run([colock, '--help'], capture_output=True, text=True, check=True).stdout
    (DOCS / 'command').mkdir(exist_ok=True)
    for name, (background, lines) in PICTURES.items():
        if not re.search(rf'^  {name} ', known, re.MULTILINE):
            continue
        holders = [subprocess.Popen(shlex.split(each), env=environment) for each in background]
        keys = {re.search(r'run (\S+)', each)[1] for each in background}
        while len({key for key in keys if f'"key":"{key}"' in run('colock ls --json | cat', environment)}) < len(keys):
            pass
        text = ''
        status = 0
        for line in lines:
            output = run(line + '; echo "\x1f$?"', environment) if line != 'echo $?' else f'{status}\n\x1f{status}\n'
            output, status = output.rsplit('\x1f', 1)
            status = int(status)
            text += f'\x1b[32m$\x1b[0m \x1b[1m{line.strip()}\x1b[0m\n' + output
        for each in holders:
            each.terminate()
            each.wait()
        (DOCS / 'command' / f'{name}.svg').write_text('\n'.join(draw(shown(text.rstrip('\n')))) + '\n')


if __name__ == '__main__':
    main()
