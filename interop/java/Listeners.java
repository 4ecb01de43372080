import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What the application of a test does with messages. Each one that comes is an event first; then the policy decides:
 *
 *   fail       messages that came fewer times than this before fail
 *   delay      the delay level that a failing message asks for; orderly: milliseconds to stay
 *   how        how to fail: later (the default), throw, null
 *   sleep      milliseconds that each message takes
 *   ack        of several messages that came at once, the last one that counts as consumed
 *   reply      the name of the producer that answers requests
 */
final class Listeners {
    static void listen(DefaultMQPushConsumer consumer, String name, String kind, Map<String, Object> policy) {
        if (kind.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                if (take(name, messages, policy)) {
                    return ConsumeOrderlyStatus.SUCCESS;
                }
                context.setSuspendCurrentQueueTimeMillis(number(policy, "delay"));
                return "null".equals(policy.get("how")) ? null : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            });
            return;
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (take(name, messages, policy)) {
                if (policy.containsKey("ack")) {
                    context.setAckIndex(messages.get(0).getReconsumeTimes() == 0 ? number(policy, "ack") : 1_000);
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            }
            context.setDelayLevelWhenNextConsume(number(policy, "delay"));
            return "null".equals(policy.get("how")) ? null : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
    }

    /** Whether the messages count as consumed. */
    private static boolean take(String name, List<MessageExt> messages, Map<String, Object> policy) {
        boolean good = true;
        for (MessageExt message : messages) {
            Driver.event("message", name, "value", Values.show(message));
            pause(number(policy, "sleep"));
            good &= message.getReconsumeTimes() >= number(policy, "fail");
            if (good && policy.containsKey("reply")) {
                reply(name, message, (DefaultMQProducer) Driver.CLIENTS.get((String) policy.get("reply")));
            }
        }
        if (!good && "throw".equals(policy.get("how"))) {
            throw new IllegalStateException("the application fails on purpose");
        }
        return good;
    }

    private static void reply(String name, MessageExt message, DefaultMQProducer producer) {
        try {
            String question = new String(message.getBody(), StandardCharsets.UTF_8);
            byte[] answer = ("answer to " + question).getBytes(StandardCharsets.UTF_8);
            producer.send(MessageUtil.createReplyMessage(message, answer), 5_000);
        } catch (Exception error) {
            Driver.event("failed", name, "value", Driver.failure(error));
        }
    }

    private static int number(Map<String, Object> policy, String key) {
        return ((Number) policy.getOrDefault(key, 0)).intValue();
    }

    private static void pause(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Decides about transactions as the message says in its properties "decide" and "check": COMMIT_MESSAGE ... */
    static final class Decide implements TransactionListener {
        private final String name;

        Decide(String name) {
            this.name = name;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.valueOf(message.getUserProperty("decide"));
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            Driver.event("check", name, "value", Values.show(message));
            return LocalTransactionState.valueOf(message.getUserProperty("check"));
        }
    }
}
