import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs one class of upstream's integration tests and prints a line for each of its cases:
 *
 *   case NAME passed|failed|ignored [why]
 *
 * It exits at once when the class is done: clients that a test left open do not keep it alive.
 */
public class RunUpstream extends RunListener {
    private Failure failure;

    public static void main(String[] arguments) throws Exception {
        JUnitCore core = new JUnitCore();
        core.addListener(new RunUpstream());
        boolean passed = core.run(Class.forName(arguments[0])).wasSuccessful();
        System.out.flush();
        Runtime.getRuntime().halt(passed ? 0 : 1);
    }

    @Override
    public void testStarted(Description test) {
        failure = null;
    }

    @Override
    public void testFailure(Failure found) {
        failure = found;
        if (found.getDescription().getMethodName() == null) { // a class that could not be set up has no cases
            say("class", "failed " + oneLine(found));
        }
    }

    @Override
    public void testIgnored(Description test) {
        String name = test.getMethodName() == null ? "class" : test.getMethodName();
        say(name, "ignored");
    }

    @Override
    public void testFinished(Description test) {
        say(test.getMethodName(), failure == null ? "passed" : "failed " + oneLine(failure));
    }

    private static String oneLine(Failure failure) {
        Throwable why = failure.getException();
        StackTraceElement[] where = why.getStackTrace();
        String place = where.length == 0 ? "" : " at " + where[0];
        return (why + place).replaceAll("\\s+", " ");
    }

    private static void say(String name, String what) {
        System.out.println("\ncase " + name + " " + what);
    }
}
