import java.io.DataInputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.SynchronousQueue;
import javax.management.ObjectName;
import javax.tools.ToolProvider;

/**
 * Runs TLC many times in one JVM, one run after the other.
 *
 * <p>A JVM that has compiled TLC checks a small model in a tenth of a second; one that has just started needs a second or
 * two. But TLC is written to run once per process: it keeps what it knows of a specification in static variables. So the
 * host remembers what the static variables, and everything reachable from them, held before the first run
 * ({@link Memento}), and restores it before the next one. Each run then begins as in a process of its own, except that the
 * JVM is warm.
 *
 * <p>A class is part of the memento if an earlier run has loaded it. A run that loads one more (the first that checks
 * liveness, say) initialises it as always; after such a run the host begins anew, with fresh classes and a memento
 * that knows all of them. Some classes look at TLC's options when they are initialised (whether to count for the
 * coverage), so runs with other options have classes and a memento of their own: a {@link Stage}.
 *
 * <p>One thing is not as in a process of its own. TLC numbers names as it meets them, and has met those of its own classes
 * earlier here. The numbers decide in which order fields are printed and in which order the search for a cycle begins,
 * so a violated liveness property may come with another of its counterexamples.
 *
 * <p>Operators of ours that TLC finds by the name of their module are compiled when the host starts, and loaded like
 * TLC's own.
 *
 * <p>Requests come by standard input: a count, and as many strings in the form of {@code DataInput.readUTF}; the first
 * one is the value of TLA-Library, the others are TLC's arguments. What TLC prints goes to standard output, followed by
 * a line {@code @!@!@HOST-END <exit code> <processor time in ms> @!@!@}. When the input ends, so does the host, whatever
 * it is doing: whoever asked is gone.
 */
public final class TlcHost {
    static final long STACK_BYTES = 16L << 20; // deep recursive operators
    static final int FAILED = 255; // the exit code of a run that ended with an exception
    static final int REQUEST_STRINGS_MAX = 1000;

    private final URL[] places;
    private final Properties properties = (Properties) System.getProperties().clone();
    private final Map<List<String>, Stage> stages = new HashMap<>();

    private TlcHost(URL... places) {
        this.places = places;
    }

    public static void main(String[] arguments) throws Exception {
        File jar = new File(arguments[0]);
        File operators = compiled(jar, List.of(arguments).subList(1, arguments.length));
        TlcHost host = new TlcHost(jar.toURI().toURL(), operators.toURI().toURL());
        SynchronousQueue<List<String>> requests = new SynchronousQueue<>();
        Thread reader = new Thread(() -> readRequests(requests), "requests");
        reader.setDaemon(true);
        reader.start();
        System.out.println("@!@!@HOST-READY @!@!@");
        while (true) {
            host.answer(requests.take());
        }
    }

    /** A folder with the classes of these sources. */
    private static File compiled(File jar, List<String> sources) throws IOException {
        File folder = Files.createTempDirectory("operators").toFile();
        List<String> arguments = new ArrayList<>(List.of("-cp", jar.getPath(), "-d", folder.getPath()));
        arguments.addAll(sources);
        int code = ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new));
        if (code != 0) {
            throw new IOException("the operators could not be compiled");
        }
        return folder;
    }

    private static void readRequests(SynchronousQueue<List<String>> requests) {
        try (DataInputStream input = new DataInputStream(System.in)) {
            while (true) {
                int count = input.readInt();
                if (count < 2 || count > REQUEST_STRINGS_MAX) {
                    throw new IOException("a request of " + count + " strings");
                }
                List<String> request = new ArrayList<>();
                while (request.size() < count) {
                    request.add(input.readUTF());
                }
                requests.put(request);
            }
        } catch (EOFException end) {
            Runtime.getRuntime().halt(0);
        } catch (IOException | InterruptedException error) {
            System.err.println("TlcHost: " + error);
            Runtime.getRuntime().halt(2);
        }
    }

    /** One run. It has a thread of its own because TLC keeps things in thread-local variables as well. */
    private void answer(List<String> request) throws Exception {
        long before = processorNanos();
        Properties fresh = (Properties) properties.clone();
        fresh.setProperty("TLA-Library", request.get(0));
        System.setProperties(fresh);
        Set<ObjectName> beans = beans();
        List<String> arguments = request.subList(1, request.size());
        Stage stage = stages.computeIfAbsent(optionsOf(arguments), options -> new Stage(places));
        int[] code = {FAILED};
        Thread run = new Thread(null, () -> code[0] = stage.run(arguments.toArray(String[]::new)), "main", STACK_BYTES);
        run.start();
        run.join();
        forgetBeans(beans);
        System.err.flush();
        System.out.println();
        System.out.println("@!@!@HOST-END " + code[0] + " " + (processorNanos() - before) / 1_000_000 + " @!@!@");
        System.out.flush();
    }

    /** The arguments without what is different in every run: files, folders and the seed. */
    private static List<String> optionsOf(List<String> arguments) {
        List<String> options = new ArrayList<>();
        for (int i = 0; i < arguments.size() - 1; i++) {
            options.add(arguments.get(i));
            if (Set.of("-metadir", "-config", "-seed").contains(arguments.get(i))) {
                i++;
            }
        }
        return options;
    }

    private static long processorNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static Set<ObjectName> beans() {
        return ManagementFactory.getPlatformMBeanServer().queryNames(null, null);
    }

    /** TLC offers its statistics for management and does not take them back: they would keep a whole run in memory. */
    private static void forgetBeans(Set<ObjectName> before) throws Exception {
        for (ObjectName name : beans()) {
            if (!before.contains(name)) {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
            }
        }
    }
}

/** TLC's classes, for runs with the same options. */
final class Stage {
    private final URL[] places;
    private final Set<String> loadedByEarlierRuns = new LinkedHashSet<>();
    private TlcLoader loader;
    private Memento memento;

    Stage(URL... places) {
        this.places = places;
    }

    /** What {@code tlc2.TLC.main} does, without the end of the process. */
    int run(String[] arguments) {
        try {
            if (loader == null) {
                loader = new TlcLoader(places);
            } else {
                memento.restore();
            }
            Thread.currentThread().setContextClassLoader(loader);
            Class<?> type = loader.loadClass("tlc2.TLC");
            Object tlc = type.getConstructor().newInstance();
            if (!(Boolean) type.getMethod("handleParameters", String[].class).invoke(tlc, (Object) arguments)) {
                return 1;
            }
            if (memento == null) {
                loader.initialise(loadedByEarlierRuns);
                memento = new Memento(loader);
            }
            // TLC's own choice of folders, made by its main: those of the library, the module's among them.
            Object folders = System.getProperty("TLA-Library").split(File.pathSeparator);
            Object resolver =
                    loader.loadClass("util.SimpleFilenameToStream").getConstructor(String[].class).newInstance(folders);
            type.getMethod("setResolver", loader.loadClass("util.FilenameToStream")).invoke(tlc, resolver);
            int error = (Integer) type.getMethod("process").invoke(tlc);
            Class<?> status = loader.loadClass("tlc2.output.EC$ExitStatus");
            return (Integer) status.getMethod("errorConstantToExitStatus", int.class).invoke(null, error);
        } catch (InvocationTargetException error) {
            error.getCause().printStackTrace();
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
        } finally {
            if (memento == null || loadedByEarlierRuns.addAll(loader.defined())) {
                loader = null;
                memento = null;
            }
        }
        return TlcHost.FAILED;
    }
}

/** Loads TLC's classes and our operators, apart from every other loader's, and knows which it has loaded. */
final class TlcLoader extends URLClassLoader {
    private final List<Class<?>> defined = Collections.synchronizedList(new ArrayList<>());

    TlcLoader(URL... places) {
        super(places, ClassLoader.getPlatformClassLoader());
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        Class<?> type = super.findClass(name);
        defined.add(type);
        return type;
    }

    List<Class<?>> types() {
        synchronized (defined) {
            return new ArrayList<>(defined);
        }
    }

    List<String> defined() {
        return types().stream().map(Class::getName).toList();
    }

    /** Initialises classes in the order in which runs have loaded them: TLC numbers names as it meets them. */
    void initialise(Set<String> names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                Class.forName(name, true, this);
            } catch (LinkageError error) {
                // A class that cannot be initialised could not be when a run loaded it either, and has no state.
            }
        }
    }
}

/** What all static variables lead to, object by object, and how to put it back. */
final class Memento {
    private static final Set<String> TRANSPARENT =
            Set.of("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks");

    private record FieldValue(Field field, Object owner, Object value) {}

    private record ArrayValue(Object array, Object copy, int length) {}

    private final ClassLoader loader;
    private final List<FieldValue> fields = new ArrayList<>();
    private final List<ArrayValue> arrays = new ArrayList<>();

    Memento(TlcLoader loader) throws IllegalAccessException {
        this.loader = loader;
        Deque<Object> open = new ArrayDeque<>();
        Map<Object, Boolean> seen = new IdentityHashMap<>();
        Set<Class<?>> types = new HashSet<>(loader.types());
        for (Class<?> type : types) {
            note(type, null, open);
        }
        while (!open.isEmpty()) {
            Object object = open.pop();
            if (seen.put(object, true) != null) {
                continue;
            }
            if (object.getClass().isArray()) {
                noteArray(object, open);
                continue;
            }
            for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
                if (isTransparent(type)) {
                    note(type, object, open);
                }
            }
        }
    }

    /** The fields of a class: the static ones without an owner, the others of that object. */
    private void note(Class<?> type, Object owner, Deque<Object> open) throws IllegalAccessException {
        for (Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) != (owner == null)) {
                continue;
            }
            field.setAccessible(true);
            Object value = field.get(owner);
            if (!Modifier.isFinal(field.getModifiers())) {
                fields.add(new FieldValue(field, owner, value));
            }
            if (!field.getType().isPrimitive()) {
                push(value, open);
            }
        }
    }

    private void noteArray(Object array, Deque<Object> open) {
        int length = Array.getLength(array);
        Object copy = Array.newInstance(array.getClass().getComponentType(), length);
        System.arraycopy(array, 0, copy, 0, length);
        arrays.add(new ArrayValue(array, copy, length));
        if (array instanceof Object[] elements) {
            for (Object element : elements) {
                push(element, open);
            }
        }
    }

    private void push(Object value, Deque<Object> open) {
        if (value != null && (value.getClass().isArray() || isTransparent(value.getClass()))) {
            open.push(value);
        }
    }

    /** TLC's own objects and Java's collections are looked into; files, threads, strings and the like are not. */
    private boolean isTransparent(Class<?> type) {
        return type.getClassLoader() == loader || TRANSPARENT.contains(type.getPackageName());
    }

    void restore() throws IllegalAccessException {
        for (FieldValue field : fields) {
            field.field().set(field.owner(), field.value());
        }
        for (ArrayValue array : arrays) {
            System.arraycopy(array.copy(), 0, array.array(), 0, array.length());
        }
    }
}
