import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs several mqadmin commands in one JVM. Arguments: the commands with their options, separated by "--".
 * Before the output of each command stands a line "=== NUMBER", and after the last one "=== end". Between that line and
 * the command is a pause, so that a recorder can note which command is running.
 */
public final class Admin {
    private static final long PAUSE_MS = 200;

    public static void main(String[] args) throws InterruptedException {
        List<String> command = new ArrayList<>();
        int number = 0;
        for (int i = 0; i <= args.length; i++) {
            if (i < args.length && !args[i].equals("--")) {
                command.add(args[i]);
                continue;
            }
            System.out.println("\n=== " + number++);
            System.out.flush();
            Thread.sleep(PAUSE_MS);
            MQAdminStartup.main(command.toArray(new String[0]));
            System.out.flush();
            command.clear();
        }
        System.out.println("\n=== end");
        System.exit(0);
    }
}
