import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BlockingWaitStrategy;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventFactory;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;
import com.lmax.disruptor.dsl.ProducerType;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * The LMAX Disruptor (3.4) under the same workloads as everything in package rivals. It is driven from outside:
 *
 *   java Lmax PRODUCERS PARTITIONS COPIES SIZE WAIT BATCH
 *
 * Each line "N RATE" of its input is a slice of N messages of each producer, at RATE messages a second of all producers (0: as
 * fast as they can). It answers with one line: "ok NS CPU_NS GCS GC_NS COUNT MEAN P50 P90 P99 P999 P9999 MAX", or "fault TEXT",
 * after which it ends.
 *
 * As its own performance tests do: a ring of preallocated events for each partition, a BatchEventProcessor for each consumer,
 * which gates the ring; a producer claims, fills and publishes one event, or BATCH of them at once. Messages are made and
 * checked as in package arena: number, order, and a checksum over all words.
 */
public final class Lmax {
    /** A kind of event. One run uses one, so that calls of its methods are direct ones. */
    interface Shape<E> extends EventFactory<E> {
        void fill(E e, int producer, long id);

        /** The id of a message, or -1 if the message is damaged. */
        long check(E e);
    }

    static final int SEQ_BITS = 48;
    static final long SEQ_MASK = (1L << SEQ_BITS) - 1;

    static long seal(long sum) {
        return sum * 0x9E3779B97F4A7C15L + 0x6C656174L;
    }

    static long filler(int producer, int word) {
        return (producer + 1) * 0xD6E8FEB86659FD93L * (word + 1);
    }

    static long line(long a, long b, long c, long d, long e, long f, long g, long h) {
        return a ^ Long.rotateLeft(b, 8) ^ Long.rotateLeft(c, 16) ^ Long.rotateLeft(d, 24)
            ^ Long.rotateLeft(e, 32) ^ Long.rotateLeft(f, 40) ^ Long.rotateLeft(g, 48) ^ Long.rotateLeft(h, 56);
    }

    static final class Event16 {
        long id, sum;
    }

    static final class Shape16 implements Shape<Event16> {
        public Event16 newInstance() {
            return new Event16();
        }

        public void fill(Event16 e, int producer, long id) {
            e.id = id;
            e.sum = seal(id);
        }

        public long check(Event16 e) {
            return e.sum == seal(e.id) ? e.id : -1;
        }
    }

    static final class Event64 {
        long id, sum, c, d, e, f, g, h;
    }

    static final class Shape64 implements Shape<Event64> {
        final long[][] words = new long[8][8];
        final long[] base = new long[8];

        Shape64() {
            for (int p = 0; p < 8; p++) {
                for (int i = 2; i < 8; i++) {
                    words[p][i] = filler(p, i);
                }
                long[] w = words[p];
                base[p] = line(0, 0, w[2], w[3], w[4], w[5], w[6], w[7]);
            }
        }

        public Event64 newInstance() {
            return new Event64();
        }

        public void fill(Event64 e, int producer, long id) {
            long[] w = words[producer];
            e.id = id;
            e.sum = seal(id ^ base[producer]);
            e.c = w[2];
            e.d = w[3];
            e.e = w[4];
            e.f = w[5];
            e.g = w[6];
            e.h = w[7];
        }

        public long check(Event64 e) {
            return e.sum == seal(line(e.id, 0, e.c, e.d, e.e, e.f, e.g, e.h)) ? e.id : -1;
        }
    }

    /** Any multiple of 64 bytes, with the id at the beginning of each 64. */
    static final class ShapeLong implements Shape<long[]> {
        final int n;
        final long[][] words = new long[8][];
        final long[] base = new long[8];

        ShapeLong(int size) {
            n = size / 8;
            for (int p = 0; p < 8; p++) {
                words[p] = new long[n];
                for (int i = 2; i < n; i++) {
                    words[p][i] = i % 8 == 0 ? 0 : filler(p, i);
                }
                base[p] = sum(words[p]);
            }
        }

        public long[] newInstance() {
            return new long[n];
        }

        static long sum(long[] w) {
            long sum = line(w[0], 0, w[2], w[3], w[4], w[5], w[6], w[7]);
            for (int i = 8; i < w.length; i += 8) {
                sum = Long.rotateLeft(sum, 5)
                    ^ line(w[i], w[i + 1], w[i + 2], w[i + 3], w[i + 4], w[i + 5], w[i + 6], w[i + 7]);
            }
            return sum;
        }

        public void fill(long[] e, int producer, long id) {
            System.arraycopy(words[producer], 0, e, 0, n);
            long ids = 0;
            for (int i = 0; i < n; i += 8) {
                e[i] = id;
                ids = Long.rotateLeft(ids, 5) ^ id;
            }
            e[1] = seal(base[producer] ^ ids);
        }

        public long check(long[] e) {
            return e[1] == seal(sum(e)) ? e[0] : -1;
        }
    }

    /** Counts nanoseconds to three digits. */
    static final class Histogram {
        final long[] counts = new long[64 << 10];
        long count, max;
        double total;

        void record(long v) {
            v = Math.max(v, 0);
            int shift = Math.max(0, 53 - Long.numberOfLeadingZeros(v)); // so that v >> shift has at most 11 bits
            counts[(shift << 10) + (int) (v >> shift)]++;
            count++;
            total += v;
            max = Math.max(max, v);
        }

        void add(Histogram o) {
            for (int i = 0; i < counts.length; i++) {
                counts[i] += o.counts[i];
            }
            count += o.count;
            total += o.total;
            max = Math.max(max, o.max);
        }

        long at(double fraction) {
            long need = (long) Math.ceil(count * fraction);
            long seen = 0;
            for (int i = 0; i < counts.length; i++) {
                seen += counts[i];
                if (seen >= need && seen > 0) {
                    // Below 2048 the index is the value; above, shift s has the indices from (s << 10) + 1024 on.
                    int shift = Math.max(0, (i >> 10) - 1);
                    long v = (long) (i - (shift << 10)) << shift;
                    return Math.min(v + (1L << shift) - 1, max);
                }
            }
            return 0;
        }
    }

    /** One slice, as the consumers see it. Written before their threads look, which the latches order. */
    static volatile Plan plan;

    static final class Plan {
        long goal; // events of a consumer, those of former slices included
        double gap; // ns between two messages of a producer; 0: no rate
        long[] start; // when each producer's first message is due
        long[] first; // and which that is
        long measured; // earlier messages of the slice are not timed
        CountDownLatch ended;
    }

    static volatile String fault;

    static void fail(String text) {
        fault = text;
    }

    static final class Consumer<E> implements EventHandler<E> {
        final Shape<E> shape;
        final int partitions;
        final long[] next = new long[8];
        long seen;
        long fullAt;
        Histogram late = new Histogram();

        Consumer(Shape<E> shape, int partition, int partitions) {
            this.shape = shape;
            this.partitions = partitions;
            for (int p = 0; p < next.length; p++) {
                next[p] = partition;
            }
        }

        public void onEvent(E e, long sequence, boolean endOfBatch) {
            Plan now = plan;
            long id = shape.check(e);
            int producer = (int) (id >>> SEQ_BITS);
            long seq = id & SEQ_MASK;
            if (id < 0 || producer >= next.length) {
                fail("a message is damaged, at " + sequence);
            } else if (seq != next[producer]) {
                fail("producer " + producer + ": " + seq + " came where " + next[producer] + " was due");
            } else {
                next[producer] = seq + partitions;
                if (now.gap != 0) {
                    long k = seq - now.first[producer];
                    if (k >= now.measured) {
                        late.record(System.nanoTime() - now.start[producer] - (long) (k * now.gap));
                    }
                }
            }
            if (++seen == now.goal) {
                fullAt = System.nanoTime();
                now.ended.countDown();
            } else if (seen > now.goal) {
                fail("a message came after the last one");
            }
        }
    }

    static final class Producer<E> {
        final int number;
        final Shape<E> shape;
        final List<RingBuffer<E>> rings;
        final int batch;
        final boolean alone;
        long seq;
        int turn;

        Producer(int number, Shape<E> shape, List<RingBuffer<E>> rings, int batch, boolean alone) {
            this.number = number;
            this.shape = shape;
            this.rings = rings;
            this.batch = batch;
            this.alone = alone;
        }

        long id(long s) {
            return (long) number << SEQ_BITS | s;
        }

        void one() {
            RingBuffer<E> ring = rings.get(turn);
            long at = ring.next();
            shape.fill(ring.get(at), number, id(seq++));
            ring.publish(at);
            if (++turn == rings.size()) {
                turn = 0;
            }
        }

        /** Publishes n messages, n * partitions at the most at once. */
        void some(int n) {
            int parts = rings.size();
            if (batch == 1) {
                for (int i = 0; i < n; i++) {
                    one();
                }
                return;
            }
            // The messages go by turns, so each ring gets every parts-th of them.
            for (int r = 0; r < parts && r < n; r++) {
                RingBuffer<E> ring = rings.get((turn + r) % parts);
                int mine = (n - r + parts - 1) / parts;
                long high = ring.next(mine);
                long low = high - mine + 1;
                for (int i = 0; i < mine; i++) {
                    shape.fill(ring.get(low + i), number, id(seq + r + (long) i * parts));
                }
                ring.publish(low, high);
            }
            seq += n;
            turn = (turn + n) % parts;
        }

        void run(long n, long start, double gap) {
            int most = batch * rings.size();
            if (gap == 0) {
                for (long left = n; left > 0; left -= most) {
                    some((int) Math.min(left, most));
                }
                return;
            }
            for (long sent = 0; sent < n; ) {
                long due = start + (long) (sent * gap);
                long now = System.nanoTime();
                while (now < due) {
                    if (alone) {
                        Thread.onSpinWait();
                    } else {
                        Thread.yield(); // more threads want to run than there are processors
                    }
                    now = System.nanoTime();
                }
                long ready = Math.max((long) ((now - start) / gap) + 1 - sent, 1);
                int k = (int) Math.min(Math.min(ready, n - sent), most);
                some(k);
                sent += k;
            }
        }
    }

    static WaitStrategy waiting(String name) {
        switch (name) {
            case "park":
                return new BlockingWaitStrategy();
            case "yield":
                return new YieldingWaitStrategy();
            case "spin":
                return new BusySpinWaitStrategy();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static long[] gc() {
        long n = 0, ms = 0;
        for (GarbageCollectorMXBean b : ManagementFactory.getGarbageCollectorMXBeans()) {
            n += b.getCollectionCount();
            ms += b.getCollectionTime();
        }
        return new long[] {n, ms * 1_000_000};
    }

    public static void main(String[] args) throws Exception {
        int size = Integer.parseInt(args[3]);
        if (size == 16) {
            run(new Shape16(), args);
        } else if (size == 64) {
            run(new Shape64(), args);
        } else {
            run(new ShapeLong(size), args);
        }
    }

    static <E> void run(Shape<E> shape, String[] args) throws Exception {
        int producers = Integer.parseInt(args[0]), partitions = Integer.parseInt(args[1]), copies = Integer.parseInt(args[2]);
        int size = Integer.parseInt(args[3]), batch = Integer.parseInt(args[5]);
        com.sun.management.OperatingSystemMXBean os =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

        // 65,536 slots, as in its own throughput tests, but not more than 4 MiB of payload.
        int slots = Math.min(1 << 16, Integer.highestOneBit((4 << 20) / size));
        List<RingBuffer<E>> rings = new ArrayList<>();
        List<Consumer<E>> consumers = new ArrayList<>();
        List<BatchEventProcessor<E>> processors = new ArrayList<>();
        for (int p = 0; p < partitions; p++) {
            rings.add(RingBuffer.create(
                producers == 1 ? ProducerType.SINGLE : ProducerType.MULTI, shape, slots, waiting(args[4])));
        }
        for (int c = 0; c < copies; c++) {
            for (int p = 0; p < partitions; p++) {
                Consumer<E> consumer = new Consumer<>(shape, p, partitions);
                RingBuffer<E> ring = rings.get(p);
                BatchEventProcessor<E> processor = new BatchEventProcessor<>(ring, ring.newBarrier(), consumer);
                ring.addGatingSequences(processor.getSequence());
                consumers.add(consumer);
                processors.add(processor);
            }
        }
        List<Producer<E>> senders = new ArrayList<>();
        for (int p = 0; p < producers; p++) {
            senders.add(new Producer<>(p, shape, rings, batch, producers == 1));
        }
        System.out.println("ready");

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        long[] sent = new long[producers];
        long goal = 0;
        for (String command = in.readLine(); command != null; command = in.readLine()) {
            String[] words = command.trim().split(" ");
            long n = Long.parseLong(words[0]);
            double rate = Double.parseDouble(words[1]);
            double gap = rate > 0 ? 1e9 / rate * producers : 0;
            goal += n * producers / partitions;

            Plan now = new Plan();
            now.goal = goal;
            now.gap = gap;
            now.start = new long[producers];
            now.first = sent.clone();
            now.measured = n / 20;
            now.ended = new CountDownLatch(consumers.size());
            CountDownLatch ready = new CountDownLatch(producers + consumers.size());
            CountDownLatch gate = new CountDownLatch(1);
            List<Thread> threads = new ArrayList<>();
            for (BatchEventProcessor<E> processor : processors) {
                threads.add(new Thread(() -> {
                    ready.countDown();
                    processor.run(); // until it is halted
                }));
            }
            for (Producer<E> sender : senders) {
                threads.add(new Thread(() -> {
                    ready.countDown();
                    try {
                        gate.await();
                    } catch (InterruptedException e) {
                        return;
                    }
                    sender.run(n, now.start[sender.number], gap);
                }));
            }
            plan = now;
            for (Consumer<E> c : consumers) {
                c.late = new Histogram();
            }
            for (Thread t : threads) {
                t.setDaemon(true);
                t.start();
            }
            ready.await();
            for (BatchEventProcessor<E> processor : processors) {
                while (!processor.isRunning()) {
                    Thread.yield();
                }
            }
            long[] gcBefore = gc();
            long cpu = os.getProcessCpuTime();
            long from = System.nanoTime() + (rate > 0 ? 1_000_000 : 0);
            for (int p = 0; p < producers; p++) {
                now.start[p] = from + (long) (gap / producers * p);
                sent[p] += n;
            }
            gate.countDown();
            now.ended.await();
            cpu = os.getProcessCpuTime() - cpu;
            long[] gcAfter = gc();
            for (BatchEventProcessor<E> processor : processors) {
                processor.halt();
            }
            for (Thread t : threads) {
                t.join();
            }
            if (fault != null) {
                System.out.println("fault " + fault);
                return;
            }
            long ns = 0;
            Histogram h = new Histogram();
            for (Consumer<E> c : consumers) {
                ns = Math.max(ns, c.fullAt - from);
                h.add(c.late);
            }
            System.out.println(String.format(java.util.Locale.ROOT, "ok %d %d %d %d %d %.1f %d %d %d %d %d %d", ns, cpu,
                gcAfter[0] - gcBefore[0], gcAfter[1] - gcBefore[1], h.count, h.count == 0 ? 0 : h.total / h.count,
                h.at(.5), h.at(.9), h.at(.99), h.at(.999), h.at(.9999), h.max));
        }
        if (fault != null) {
            System.out.println("fault " + fault);
        }
    }
}
