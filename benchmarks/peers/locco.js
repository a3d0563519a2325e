// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { connect, main, required, run, ttl } = require('./load.js');

main(async () => {
    const { IoRedisAdapter, Locker } = required('@kontsedal/locco');
    const adapter = new IoRedisAdapter({ client: connect() });
    // locco has no default settings; these are the values of its README.
    const locker = new Locker({ adapter, retrySettings: { retryDelay: 200, retryTimes: 10 } });
    await run(async (key) => {
        const lock = await locker.lock(key, ttl).acquire();
        await lock.release({ throwOnFail: true });
    });
});
