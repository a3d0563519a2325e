// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { connect, imported, main, run, ttl } = require('./load.js');

main(async () => {
    const { createLock } = await imported('@microfleet/ioredis-lock');
    const client = connect();
    await run(async (key) => {
        const lock = createLock(client, { timeout: ttl });
        await lock.acquire(key);
        await lock.release();
    });
});
