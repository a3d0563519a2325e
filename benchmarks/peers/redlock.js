// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { connect, main, required, run, ttl } = require('./load.js');

main(async () => {
    const { default: Redlock } = required('redlock');
    const redlock = new Redlock([connect()]);
    // redlock emits an 'error' event for every busy key. Without a handler this would be an uncaught error.
    redlock.on('error', () => {});
    await run(async (key) => {
        const lock = await redlock.acquire([key], ttl);
        await lock.release();
    });
});
