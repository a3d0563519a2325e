// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { client, importModule, speak } = require('./speak.js');

importModule('@microfleet/ioredis-lock').then(({ createLock, LockAcquisitionError, LockReleaseError }) =>
    speak({
        async take(key, timeout) {
            const lock = createLock(client, { timeout, retries: 0 });
            try {
                return await lock.acquire(key);
            } catch (problem) {
                if (problem instanceof LockAcquisitionError && problem.message.startsWith('Could not acquire')) return null;
                throw problem;
            }
        },
        async release(lock) {
            try {
                return await lock.release();
            } catch (problem) {
                if (problem instanceof LockReleaseError && problem.message.endsWith('had expired')) return false;
                throw problem;
            }
        },
    }),
);
