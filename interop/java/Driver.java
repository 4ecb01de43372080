import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Clients of one version, driven from outside: a command is one JSON object on one line of standard input, and each has
 * one answer on a line of standard output with the same "id": "ok" and a value, or "error", "kind" and "code". Lines
 * with "event" come whenever something happens. Commands run beside each other. The end of the input ends the process.
 *
 *   new        name, type, arguments, options (property -> value): makes a client, to be started with call
 *   call       name, method, arguments: any public method of it, see Values for how arguments are written
 *   listen     name, kind (concurrent, orderly), policy: see Listeners
 *   owned      name: the queues that a push consumer holds now
 *   forget     name: shuts a client down
 *   mqadmin    arguments: what the command prints
 */
public final class Driver {
    static final Map<String, Object> CLIENTS = new ConcurrentHashMap<>();
    private static final PrintStream ANSWERS = System.out;
    private static final ExecutorService WORKERS = Executors.newCachedThreadPool();
    private static final Object ADMIN = new Object();
    private static final Map<String, String> PACKAGES = Map.of(
        "DefaultMQProducer", "client.producer.", "TransactionMQProducer", "client.producer.",
        "DefaultMQPushConsumer", "client.consumer.", "DefaultMQPullConsumer", "client.consumer.",
        "DefaultLitePullConsumer", "client.consumer.", "DefaultMQAdminExt", "tools.admin.");

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);  // what the libraries print belongs to the log
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say(Map.of("event", "ready", "name", ""));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            Map<String, Object> command = RemotingSerializable.fromJson(line, Map.class);
            WORKERS.execute(() -> answer(command));
        }
        Runtime.getRuntime().halt(0);
    }

    /** One line to the other side. */
    static void say(Map<String, Object> line) {
        byte[] text = (RemotingSerializable.toJson(line, false) + "\n").getBytes(StandardCharsets.UTF_8);
        synchronized (ANSWERS) {
            ANSWERS.write(text, 0, text.length);
            ANSWERS.flush();
        }
    }

    static void event(String event, String name, String key, Object value) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("name", name);
        line.put("at", System.currentTimeMillis());
        line.put(key, value);
        say(line);
    }

    private static void answer(Map<String, Object> command) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("id", command.get("id"));
        try {
            line.put("ok", Values.show(run(command)));
        } catch (Throwable error) {
            line.putAll(failure(error));
        }
        say(line);
    }

    static Map<String, Object> failure(Throwable error) {
        Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("error", String.valueOf(cause.getMessage()));
        line.put("kind", cause.getClass().getSimpleName());
        line.put("code", cause instanceof MQBrokerException ? ((MQBrokerException) cause).getResponseCode()
            : cause instanceof MQClientException ? ((MQClientException) cause).getResponseCode() : -1);
        return line;
    }

    private static Object run(Map<String, Object> command) throws Exception {
        String name = (String) command.get("name");
        List<Object> arguments = (List<Object>) command.getOrDefault("arguments", List.of());
        switch ((String) command.get("op")) {
            case "new":
                return make(name, (String) command.get("type"), arguments, (Map<String, Object>) command.get("options"));
            case "call":
                return call(CLIENTS.get(name), (String) command.get("method"), arguments);
            case "listen":
                Listeners.listen((DefaultMQPushConsumer) CLIENTS.get(name), name, (String) command.get("kind"),
                    (Map<String, Object>) command.get("policy"));
                return null;
            case "owned":
                return ((DefaultMQPushConsumer) CLIENTS.get(name)).getDefaultMQPushConsumerImpl().getRebalanceImpl()
                    .getProcessQueueTable().keySet();
            case "forget":
                return call(CLIENTS.remove(name), "shutdown", List.of());
            case "mqadmin":
                return admin(arguments);
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }

    private static Object make(String name, String kind, List<Object> arguments, Map<String, Object> options)
        throws Exception {
        Class<?> type = Class.forName("org.apache.rocketmq." + PACKAGES.get(kind) + kind);
        Object client = null;
        for (Constructor<?> constructor : type.getConstructors()) {
            Object[] values = fit(constructor, arguments);
            if (values != null) {
                client = constructor.newInstance(values);
                break;
            }
        }
        if (client == null) {
            throw new NoSuchMethodException("no constructor of " + kind + " takes " + arguments);
        }
        for (Map.Entry<String, Object> option : options.entrySet()) {
            set(client, option.getKey(), option.getValue());
        }
        if (client instanceof TransactionMQProducer) {
            ((TransactionMQProducer) client).setTransactionListener(new Listeners.Decide(name));
        }
        CLIENTS.put(name, client);
        return null;
    }

    static void set(Object target, String property, Object value) {
        try {
            String setter = "set" + property.substring(0, 1).toUpperCase() + property.substring(1);
            call(target, setter, Collections.singletonList(value));
        } catch (Exception error) {
            throw new IllegalArgumentException(property + " cannot be " + value, error);
        }
    }

    private static Object call(Object client, String name, List<Object> arguments) throws Exception {
        for (Method method : client.getClass().getMethods()) {
            Object[] values = method.getName().equals(name) ? fit(method, arguments) : null;
            if (values != null) {
                return method.invoke(client, values);
            }
        }
        throw new NoSuchMethodException("no method " + name + " of " + client.getClass() + " takes " + arguments);
    }

    /** The arguments as the types that a method wants, or null when they do not fit. */
    private static Object[] fit(Executable method, List<Object> arguments) {
        Class<?>[] types = method.getParameterTypes();
        if (types.length != arguments.size()) {
            return null;
        }
        Object[] values = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            try {
                values[i] = Values.read(arguments.get(i), types[i]);
            } catch (IllegalArgumentException error) {
                return null;
            }
        }
        return values;
    }

    /** mqadmin is made for one command in a process: some keep a client that the end of the first run has shut down. */
    private static void forgetCommands() throws ReflectiveOperationException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
    }

    /** One mqadmin command at a time: what it prints is caught on the way to standard output. */
    private static String admin(List<Object> arguments) throws ReflectiveOperationException {
        synchronized (ADMIN) {
            ByteArrayOutputStream caught = new ByteArrayOutputStream();
            PrintStream before = System.out;
            PrintStream errors = System.err;
            PrintStream both = new PrintStream(caught, true);
            System.setOut(both);
            System.setErr(both);
            try {
                forgetCommands();
                MQAdminStartup.main(arguments.stream().map(String::valueOf).toArray(String[]::new));
            } finally {
                System.setOut(before);
                System.setErr(errors);
            }
            return caught.toString(StandardCharsets.UTF_8);
        }
    }
}
