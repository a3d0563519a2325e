// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { client, requireModule, speak } = require('./speak.js');
const { IoRedisAdapter, Locker, errors } = requireModule('@kontsedal/locco');

const locker = new Locker({ adapter: new IoRedisAdapter({ client }), retrySettings: { retryDelay: 1, retryTimes: 1 } });

speak({
    async take(key, ttl) {
        try {
            return await locker.lock(key, ttl).acquire();
        } catch (problem) {
            if (problem instanceof errors.RetryError) return null;
            throw problem;
        }
    },
    async release(lock) {
        try {
            await lock.release({ throwOnFail: true });
            return true;
        } catch (problem) {
            if (problem instanceof errors.LockReleaseError) return false;
            throw problem;
        }
    },
});
