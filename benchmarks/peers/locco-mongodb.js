// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { address, main, required, run, ttl } = require('./load.js');

main(async () => {
    const { Locker, MongoAdapter } = required('@kontsedal/locco');
    const { MongoClient } = required('mongodb');
    // The number of connections is the same as with colock.
    const client = new MongoClient(`mongodb://${address}/?directConnection=true`, { maxPoolSize: 8 });
    await client.connect();
    const adapter = new MongoAdapter({ client, dbName: 'locco', locksCollectionName: 'locks' });
    // locco has no default settings; these are the values of its README.
    const locker = new Locker({ adapter, retrySettings: { retryDelay: 200, retryTimes: 10 } });
    await run(async (key) => {
        const lock = await locker.lock(key, ttl).acquire();
        await lock.release({ throwOnFail: true });
    });
});
