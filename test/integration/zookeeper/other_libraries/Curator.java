// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/**
 * java Curator.java ZOOKEEPER_PORT
 *
 * Carries out the commands of the test, one per line, and answers each with a line. Each WHO has its own thread.
 *
 *   take WHO PATH mutex|read|write   asked
 *   await WHO                        granted, once it is
 *   release WHO                      released
 */
public final class Curator {
    private static final class Asker {
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        InterProcessLock lock;
        Future<?> granted;
    }

    public static void main(String[] words) throws Exception {
        CuratorFramework client =
            CuratorFrameworkFactory.newClient("127.0.0.1:" + words[0], 10_000, 10_000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        Map<String, Asker> askers = new HashMap<>();
        BufferedReader said = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = said.readLine()) != null;) {
            String answer;
            try {
                answer = carryOut(client, askers, line.split(" "));
            } catch (Exception problem) {
                answer = "failed: " + problem;
            }
            System.out.println(answer);
        }
        System.exit(0);
    }

    private static String carryOut(CuratorFramework client, Map<String, Asker> askers, String[] said) throws Exception {
        Asker asker = askers.computeIfAbsent(said[1], who -> new Asker());
        switch (said[0]) {
        case "take":
            asker.lock = lockOf(client, said[2], said[3]);
            asker.granted = asker.thread.submit(() -> {
                asker.lock.acquire();
                return null;
            });
            return "asked";
        case "await":
            asker.granted.get();
            return "granted";
        case "release":
            asker.thread.submit(() -> {
                asker.lock.release();
                return null;
            }).get();
            return "released";
        default:
            return "failed: unknown " + said[0];
        }
    }

    private static InterProcessLock lockOf(CuratorFramework client, String path, String kind) {
        if (kind.equals("mutex"))
            return new InterProcessMutex(client, path);
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        return kind.equals("read") ? both.readLock() : both.writeLock();
    }
}
