package tlc2.module; // where TLC looks for the operators of a module

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.util.Arrays;
import tlc2.value.impl.BoolValue;
import tlc2.value.impl.IntValue;
import tlc2.value.impl.RecordValue;
import tlc2.value.impl.StringValue;
import tlc2.value.impl.Value;
import util.UniqueString;

/**
 * The events of a trace for TLC: what the operators of the module TraceEvents stand for.
 *
 * <p>A module with a record for each event would cost more to parse than the trace costs to judge. So the runner writes
 * the events to a file beside the module that TLC runs, and an event becomes a record when it is looked at. The file: how
 * many kinds of events there are; for each its action, how many fields it has and their names; how many events there are;
 * for each the number of its kind and its fields. Numbers are four bytes, the highest first, texts those of
 * {@code DataInput.readUTF}. A field whose name begins with {@code by_} is a truth value.
 */
public final class TraceEvents {
    private static final String FILE = "trace.events";
    private static TraceEvents loaded;

    private final UniqueString[][] names;
    private final StringValue[] actions;
    private final int[][] places;
    private final boolean[][] isTruth;
    private final int[] kinds;
    private final int[] starts;
    private final int[] numbers;

    private TraceEvents(DataInputStream input) throws IOException {
        int kindCount = input.readInt();
        names = new UniqueString[kindCount][];
        actions = new StringValue[kindCount];
        places = new int[kindCount][];
        isTruth = new boolean[kindCount][];
        for (int kind = 0; kind < kindCount; kind++) {
            actions[kind] = new StringValue(input.readUTF());
            String[] fields = new String[input.readInt()];
            for (int i = 0; i < fields.length; i++) {
                fields[i] = input.readUTF();
            }
            describe(kind, fields);
        }
        kinds = new int[input.readInt()];
        starts = new int[kinds.length];
        int[] room = new int[1 << 12];
        int used = 0;
        for (int i = 0; i < kinds.length; i++) {
            kinds[i] = input.readInt();
            starts[i] = used;
            for (int left = places[kinds[i]].length - 1; left > 0; left--) {
                room = used < room.length ? room : Arrays.copyOf(room, 2 * used);
                room[used++] = input.readInt();
            }
        }
        numbers = room;
    }

    /** TLC wants the fields of a record in an order of its own; `places` says where each is in the file, -1 the action. */
    private void describe(int kind, String[] fields) {
        UniqueString[] all = new UniqueString[fields.length + 1];
        all[0] = UniqueString.uniqueStringOf("action");
        for (int i = 0; i < fields.length; i++) {
            all[i + 1] = UniqueString.uniqueStringOf(fields[i]);
        }
        Integer[] order = new Integer[all.length];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, (a, b) -> all[a].compareTo(all[b]));
        names[kind] = new UniqueString[all.length];
        places[kind] = new int[all.length];
        isTruth[kind] = new boolean[all.length];
        for (int i = 0; i < all.length; i++) {
            names[kind][i] = all[order[i]];
            places[kind][i] = order[i] - 1;
            isTruth[kind][i] = order[i] > 0 && fields[order[i] - 1].startsWith("by_");
        }
    }

    private Value record(int number) {
        int kind = kinds[number];
        Value[] values = new Value[places[kind].length];
        for (int i = 0; i < values.length; i++) {
            int place = places[kind][i];
            if (place < 0) {
                values[i] = actions[kind];
            } else if (isTruth[kind][i]) {
                values[i] = numbers[starts[number] + place] != 0 ? BoolValue.ValTrue : BoolValue.ValFalse;
            } else {
                values[i] = IntValue.gen(numbers[starts[number] + place]);
            }
        }
        return new RecordValue(names[kind], values, true);
    }

    private static synchronized TraceEvents events() throws IOException {
        if (loaded == null) {
            for (String folder : System.getProperty("TLA-Library").split(File.pathSeparator)) {
                File file = new File(folder, FILE);
                if (file.isFile()) {
                    try (DataInputStream input =
                            new DataInputStream(new BufferedInputStream(new FileInputStream(file), 1 << 16))) {
                        loaded = new TraceEvents(input);
                    }
                    return loaded;
                }
            }
            throw new IOException("there is no " + FILE + " beside the module");
        }
        return loaded;
    }

    /** The number of events. */
    public static Value EventCount() throws IOException {
        return IntValue.gen(events().kinds.length);
    }

    /** Event number n, from 1. */
    public static Value EventAt(Value n) throws IOException {
        return events().record(((IntValue) n).val - 1);
    }
}
