// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { parseArgs } = require('node:util');

const text = (fallback) => ({ type: 'string', default: fallback });
const { values } = parseArgs({
    options: {
        host: text('127.0.0.1'),
        port: text('6379'),
        ttl: text('30000'),
        keys: text('6400'),
        concurrency: text('64'),
        seconds: text('2'),
        // Folder in which the libraries are installed, outside of the source tree.
        modules: text('.'),
        // The host and port are those of a node of a Redis Cluster.
        cluster: { type: 'boolean', default: false },
    },
});

const installed = createRequire(path.resolve(values.modules, 'package.json'));
const number = (name) => Number(values[name]);

exports.ttl = number('ttl');
exports.address = `${values.host}:${values.port}`;
exports.required = (name) => installed(name);
exports.imported = (name) => import(pathToFileURL(installed.resolve(name)).href);
exports.connect = () => {
    const { Cluster, Redis } = installed('ioredis');
    const address = { host: values.host, port: number('port') };
    if (values.cluster) return new Cluster([address], { enableAutoPipelining: true });
    return new Redis({ ...address, enableAutoPipelining: true });
};

/// Each worker acquires and releases its own keys in turn. So there is no contention, and only the round trips are
/// measured. If there are fewer keys than workers, each worker uses one key, which it shares with others. If a library
/// gives up, the acquire is repeated. Prints the rate between the warm-up and the end.
exports.run = async (pair) => {
    const [keys, concurrency, seconds] = [number('keys'), number('concurrency'), number('seconds')];
    let pairs = 0;
    let stopping = false;
    let maxPairTime = 0;
    const work = async (first) => {
        for (let key = first; !stopping; key = key + concurrency < keys ? key + concurrency : first) {
            await pair(`load:${key}`);
            ++pairs;
        }
    };
    const contend = async (key) => {
        for (let start = performance.now(); !stopping; ) {
            const had = await pair(`load:${key}`).then(() => true, () => false);
            const now = performance.now();
            maxPairTime = Math.max(maxPairTime, now - start);
            if (!had) continue;
            ++pairs;
            start = now;
        }
    };
    const workers = [];
    for (let number = 0; number < concurrency; ++number)
        workers.push(keys < concurrency ? contend(number % keys) : work(number));
    const pause = (time) => new Promise((resolve) => setTimeout(resolve, time * 1000));
    const ended = (async () => {
        await pause(Math.min(seconds, 0.5));
        maxPairTime = 0;
        const [before, cpu, start] = [pairs, process.cpuUsage(), process.hrtime.bigint()];
        await pause(seconds);
        const counted = pairs - before;
        const { user, system } = process.cpuUsage(cpu);
        const elapsed = Number(process.hrtime.bigint() - start) / 1e9;
        stopping = true;
        return {
            pairs_per_second: counted / elapsed,
            cpu_us_per_pair: (user + system) / Math.max(counted, 1),
        };
    })();
    const [rate] = await Promise.all([ended, ...workers]);
    console.log(JSON.stringify({ ...rate, pairs, max_pair_time_ms: maxPairTime }));
};

exports.main = (body) =>
    body().then(
        () => process.exit(0),
        (problem) => {
            console.error(problem);
            process.exit(1);
        },
    );
