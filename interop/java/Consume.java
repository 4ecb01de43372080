import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Consumes until COUNT messages have come and prints one line for each:
 * got UNIQUE_ID QUEUE QUEUE_OFFSET RECONSUMED KEY BODY_LENGTH.
 *
 * Arguments: nameserver topic group kind count [expression]. Kinds: concurrent, orderly, lite, retry (every message
 * is sent back once).
 */
public final class Consume {
    private static final long TIMEOUT_S = 60;

    public static void main(String[] args) throws Exception {
        // Without this the threads of a client keep the process when its only user has failed.
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        String kind = args[3];
        CountDownLatch left = new CountDownLatch(Integer.parseInt(args[4]));
        String expression = args.length > 5 ? args[5] : "*";
        boolean all = kind.equals("lite") ? lite(args, expression, left) : push(args, kind, expression, left);
        System.out.println(all ? "done" : "missing " + left.getCount());
        System.exit(all ? 0 : 1);
    }

    private static boolean push(String[] args, String kind, String expression, CountDownLatch left) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName("consume-" + args[2]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.subscribe(args[1], expression);
        if (kind.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                show(messages, left);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                if (kind.equals("retry") && messages.get(0).getReconsumeTimes() == 0) {
                    context.setDelayLevelWhenNextConsume(1);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                show(messages, left);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        System.out.println("started");
        boolean all = left.await(TIMEOUT_S, TimeUnit.SECONDS);
        Thread.sleep(200);  // let the last consume results reach the offset table before it is persisted
        consumer.shutdown();
        return all;
    }

    private static boolean lite(String[] args, String expression, CountDownLatch left) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName("consume-" + args[2]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], expression);
        consumer.start();
        System.out.println("started");
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(TIMEOUT_S);
        while (left.getCount() > 0 && System.nanoTime() < until) {
            show(consumer.poll(500), left);
        }
        consumer.commitSync();
        consumer.shutdown();
        return left.getCount() == 0;
    }

    private static synchronized void show(List<MessageExt> messages, CountDownLatch left) {
        for (MessageExt message : messages) {
            System.out.println("got " + message.getMsgId() + " " + message.getQueueId() + " " + message.getQueueOffset()
                + " " + message.getReconsumeTimes() + " " + message.getKeys() + " "
                + new String(message.getBody(), StandardCharsets.UTF_8).length());
            left.countDown();
        }
    }
}
