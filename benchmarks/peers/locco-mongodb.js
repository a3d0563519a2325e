// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { address, main, required, run, ttl } = require('./load.js');

main(async () => {
    const { Locker, MongoAdapter } = required('@kontsedal/locco');
    const { MongoClient } = required('mongodb');
    // As many connections as colock has.
    const client = new MongoClient(`mongodb://${address}/?directConnection=true`, { maxPoolSize: 8 });
    await client.connect();
    const adapter = new MongoAdapter({ client, dbName: 'locco', locksCollectionName: 'locks' });
    // It has no defaults; these are those of its README.
    const locker = new Locker({ adapter, retrySettings: { retryDelay: 200, retryTimes: 10 } });
    await run(async (key) => {
        const lock = await locker.lock(key, ttl).acquire();
        await lock.release({ throwOnFail: true });
    });
});
