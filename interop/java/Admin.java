import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs several mqadmin commands in one JVM. Arguments: the commands with their options, separated by "--".
 * Before the output of each command stands a line "=== NUMBER", and after the last one "=== end".
 */
public final class Admin {
    public static void main(String[] args) {
        List<String> command = new ArrayList<>();
        int number = 0;
        for (int i = 0; i <= args.length; i++) {
            if (i < args.length && !args[i].equals("--")) {
                command.add(args[i]);
                continue;
            }
            System.out.println("=== " + number++);
            MQAdminStartup.main(command.toArray(new String[0]));
            System.out.flush();
            command.clear();
        }
        System.out.println("=== end");
        System.exit(0);
    }
}
