// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { connect, main, required, run, ttl } = require('./load.js');

main(async () => {
    const { default: Redlock } = required('redlock');
    const redlock = new Redlock([connect()]);
    // Every busy key is told there, and to nobody is an error of its own.
    redlock.on('error', () => {});
    await run(async (key) => {
        const lock = await redlock.acquire([key], ttl);
        await lock.release();
    });
});
