import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends messages and prints one line for each: sent STATUS UNIQUE_ID OFFSET_ID BROKER QUEUE QUEUE_OFFSET KEY TAG,
 * or for a whole batch: batch STATUS UNIQUE_IDS OFFSET_IDS BROKER QUEUE QUEUE_OFFSET.
 *
 * Arguments: nameserver topic KIND:COUNT... Kinds: plain, big (compressed), batch, delay, oneway, and commit, rollback
 * and unknown (transactions with that decision; an unknown one is committed when it is asked back).
 */
public final class Produce {
    public static void main(String[] args) throws Exception {
        // Without this the threads of a client keep the process when its only user has failed.
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        for (int i = 2; i < args.length; i++) {
            String[] order = args[i].split(":");
            produce(args[0], args[1], order[0], Integer.parseInt(order[1]));
        }
    }

    private static void produce(String nameserver, String topic, String kind, int count) throws Exception {
        boolean transactional = kind.equals("commit") || kind.equals("rollback") || kind.equals("unknown");
        DefaultMQProducer producer = transactional ? transactional(kind) : new DefaultMQProducer("producer-" + kind);
        producer.setNamesrvAddr(nameserver);
        producer.setSendMsgTimeout(10_000);
        producer.setInstanceName("produce-" + kind);
        producer.start();
        if (kind.equals("batch")) {
            List<Message> messages = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                messages.add(message(topic, kind, i));
            }
            SendResult result = producer.send(messages);
            System.out.println("batch " + describe(result));
        } else if (kind.equals("oneway")) {
            for (int i = 0; i < count; i++) {
                producer.sendOneway(message(topic, kind, i));
            }
            Thread.sleep(500);
        } else {
            for (int i = 0; i < count; i++) {
                Message message = message(topic, kind, i);
                SendResult result = transactional
                    ? producer.sendMessageInTransaction(message, null) : producer.send(message);
                System.out.println("sent " + describe(result) + " " + message.getKeys() + " " + message.getTags());
            }
            if (transactional) {
                Thread.sleep(kind.equals("unknown") ? 6_000 : 500);  // decisions are one-way; check-backs take a while
            }
        }
        producer.shutdown();
    }

    private static String describe(SendResult result) {
        return result.getSendStatus() + " " + result.getMsgId() + " " + result.getOffsetMsgId() + " "
            + result.getMessageQueue().getBrokerName() + " " + result.getMessageQueue().getQueueId() + " "
            + result.getQueueOffset();
    }

    private static Message message(String topic, String kind, int i) {
        String body = kind.equals("big") ? "big " + i + " " + "compressible ".repeat(500) : "body of " + kind + " " + i;
        String tag = i % 2 == 0 ? "even" : "odd";
        Message message = new Message(topic, tag, kind + "-" + i, body.getBytes(StandardCharsets.UTF_8));
        message.putUserProperty("number", String.valueOf(i));
        if (kind.equals("delay")) {
            message.setDelayTimeLevel(1);
        }
        return message;
    }

    private static TransactionMQProducer transactional(String kind) {
        LocalTransactionState decision = kind.equals("commit") ? LocalTransactionState.COMMIT_MESSAGE
            : kind.equals("rollback") ? LocalTransactionState.ROLLBACK_MESSAGE : LocalTransactionState.UNKNOW;
        TransactionMQProducer producer = new TransactionMQProducer("producer-" + kind);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return decision;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        return producer;
    }
}
