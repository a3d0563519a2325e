// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Uses one thread for each worker, and one client for all of them. Options and output are the same as in load.js. */
public final class CuratorLoad {
    /** Duration of the warm-up as a multiple of --seconds; a Java virtual machine needs some seconds to reach its speed. */
    private static final double WARM_UP = 3;

    private static final LongAdder pairs = new LongAdder();
    private static final AtomicLong maxPairTime = new AtomicLong();
    private static volatile boolean stopping = false;

    public static void main(String[] words) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i + 1 < words.length; i += 2)
            given.put(words[i], words[i + 1]);
        int keys = Integer.parseInt(given.get("--keys"));
        int concurrency = Integer.parseInt(given.get("--concurrency"));
        double seconds = Double.parseDouble(given.get("--seconds"));
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            given.get("--host") + ":" + given.get("--port"), 15_000, 15_000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();

        List<Thread> workers = new ArrayList<>();
        for (int number = 0; number < concurrency; ++number) {
            List<InterProcessMutex> own = new ArrayList<>();
            // If there are fewer keys than workers, each worker uses one key, which it shares with others.
            for (int key = number % keys; key < keys; key += concurrency)
                own.add(new InterProcessMutex(client, "/curator/load:" + key));
            Thread worker = new Thread(() -> work(own));
            workers.add(worker);
            worker.start();
        }

        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        String begins = given.get("--begins");
        pause(begins == null ? WARM_UP * seconds : Long.parseLong(begins) - System.currentTimeMillis() / 1e3);
        maxPairTime.set(0);
        long before = pairs.sum();
        long cpu = system.getProcessCpuTime();
        long start = System.nanoTime();
        pause(seconds);
        long counted = pairs.sum() - before;
        double used = system.getProcessCpuTime() - cpu;
        double elapsed = System.nanoTime() - start;
        stopping = true;
        for (Thread each : workers)
            each.join();
        System.out.println(String.format(Locale.ROOT,
            "{\"pairs_per_second\": %f, \"cpu_us_per_pair\": %f, \"pairs\": %d, \"max_pair_time_ms\": %f}",
            counted * 1e9 / elapsed, used / 1e3 / Math.max(counted, 1), pairs.sum(), maxPairTime.get() / 1e6));
        System.exit(0);
    }

    private static void pause(double seconds) throws InterruptedException {
        Thread.sleep(Math.max(0, Math.round(seconds * 1e3)));
    }

    private static void work(List<InterProcessMutex> own) {
        try {
            for (int i = 0; !stopping; i = (i + 1) % own.size()) {
                long start = System.nanoTime();
                own.get(i).acquire();
                own.get(i).release();
                pairs.increment();
                maxPairTime.accumulateAndGet(System.nanoTime() - start, Math::max);
            }
        } catch (Exception problem) {
            problem.printStackTrace();
            System.exit(1);
        }
    }
}
