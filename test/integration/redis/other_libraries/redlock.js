// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
'use strict';

const { client, requireModule, speak } = require('./speak.js');
const { default: Redlock, ExecutionError, ResourceLockedError } = requireModule('redlock');

const redlock = new Redlock([client], { retryCount: 0 });
// Redlock also emits this event for every busy key.
redlock.on('error', () => {});

const refused = async (problem) => {
    if (!(problem instanceof ExecutionError)) return false;
    const votes = (await Promise.all(problem.attempts)).flatMap((each) => [...each.votesAgainst.values()]);
    return votes.length > 0 && votes.every((each) => each instanceof ResourceLockedError);
};

speak({
    async take(key, ttl) {
        try {
            return await redlock.acquire([key], ttl);
        } catch (problem) {
            if (await refused(problem)) return null;
            throw problem;
        }
    },
    async release(lock) {
        try {
            return await lock.release();
        } catch (problem) {
            if (await refused(problem)) return false;
            throw problem;
        }
    },
});
