// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

// node LIBRARY.js REDIS_PORT server|cluster MODULES
//
// Executes the commands of the test, one per line, and answers each with a line:
//
//   take KEY TTL_MS          granted | busy
//   release                  released | not ours
//   add KEY NUMBER TIMES     added: incremented NUMBER so often, each time under the lock KEY
//
// An answer that begins with "failed" reports an unexpected error of the library.

const { createRequire } = require('node:module');
const path = require('node:path');
const readline = require('node:readline');
const { setTimeout: pause } = require('node:timers/promises');
const { pathToFileURL } = require('node:url');

const [port, kind, modules] = process.argv.slice(2);
const installed = createRequire(path.resolve(modules, 'package.json'));
const { Cluster, Redis } = installed('ioredis');
const address = { host: '127.0.0.1', port: Number(port) };
const client = kind === 'cluster' ? new Cluster([address]) : new Redis(address);

exports.client = client;
exports.requireModule = (name) => installed(name);
exports.importModule = (name) => import(pathToFileURL(installed.resolve(name)).href);

/// take(key, ttl): returns a lock, or null if it is busy. release(lock): returns false if the lock is not held any
/// more.
exports.speak = async ({ take, release }) => {
    let held = null;
    const verbs = {
        async take(key, ttl) {
            const taken = await take(key, Number(ttl));
            held = taken || held;
            return taken ? 'granted' : 'busy';
        },
        async release() {
            return (await release(held)) ? 'released' : 'not ours';
        },
        async add(key, number, times) {
            for (let i = 0; i < Number(times); ++i) {
                let lock = null;
                while (!(lock = await take(key, 60000))) await pause(2);
                const value = Number(await client.get(number));
                await pause(1);
                await client.set(number, value + 1);
                if (!(await release(lock))) return 'failed: released by somebody else';
                await pause(2);
            }
            return 'added';
        },
    };
    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [verb, ...words] = line.split(' ');
        const answer = await verbs[verb](...words).catch((problem) => `failed: ${problem}`);
        process.stdout.write(`${String(answer).replaceAll('\n', ' ')}\n`);
    }
    process.exit(0);
};
