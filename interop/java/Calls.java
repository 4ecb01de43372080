import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Makes the calls for which mqadmin has no command, so that every request code is seen on the wire.
 *
 * Arguments: nameserver topic group broker-address real-port seen-port. The two ports are those of the broker and of the
 * recorder before it: a message id holds the broker's own address, so ids are turned to point to the recorder.
 * Prints "result NAME OUTCOME" for each call. A call that the server refuses is an outcome too.
 */
public final class Calls {
    private static DefaultMQAdminExt admin;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        String group = args[2];
        String broker = args[3];
        admin = new DefaultMQAdminExt(5_000);
        admin.setNamesrvAddr(args[0]);
        admin.setInstanceName("calls-admin");
        admin.start();
        DefaultMQPushConsumer consumer = consumer(args[0], topic, group);
        consumer.start();
        DefaultMQProducer producer = new DefaultMQProducer("calls-producer");
        producer.setNamesrvAddr(args[0]);
        producer.setInstanceName("calls-producer");
        producer.start();
        Thread.sleep(2_000);

        Message message = new Message(topic, "even", "calls-key", "a body for calls".getBytes());
        message.putUserProperty("number", "7");
        SendResult sent = producer.send(message);
        MessageQueue queue = sent.getMessageQueue();
        String id = sent.getOffsetMsgId().replace(hex(args[4]), hex(args[5]));
        long now = System.currentTimeMillis();

        var api = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getMQClientAPIImpl();
        call("request", () -> producer.request(new Message(topic, "ask", "question".getBytes()), 5_000).getBody().length);
        call("maxOffset", () -> admin.maxOffset(queue));
        call("minOffset", () -> admin.minOffset(queue));
        call("searchOffset", () -> admin.searchOffset(queue, now));
        call("earliestMsgStoreTime", () -> admin.earliestMsgStoreTime(queue));
        call("viewMessage", () -> admin.viewMessage(topic, id).getTopic());
        call("queryMessage", () -> admin.queryMessage(topic, "calls-key", 10, 0, now + 10_000).getMessageList().size());
        call("getKVListByNamespace", () -> admin.getKVListByNamespace("ORDER_TOPIC_CONFIG"));
        call("getUnitTopicList", () -> api.getUnitTopicList(false, 5_000));
        call("getHasUnitSubTopicList", () -> api.getHasUnitSubTopicList(false, 5_000));
        call("getHasUnitSubUnUnitTopicList", () -> api.getHasUnitSubUnUnitTopicList(false, 5_000));
        call("getTopicsByCluster", () -> api.getTopicsByCluster("DefaultCluster", 5_000));
        call("getSystemTopicList", () -> api.getSystemTopicList(5_000));
        call("getSystemTopicListFromBroker", () -> api.getSystemTopicListFromBroker(broker, 5_000));
        call("getTopicClusterList", () -> admin.getTopicClusterList(topic));
        call("getAllSubscriptionGroup", () -> admin.getAllSubscriptionGroup(broker, 5_000));
        call("getAllTopicConfig", () -> reflect(api, "getAllTopicConfig", broker, 5_000L));
        call("fetchBrokerRuntimeStats", () -> admin.fetchBrokerRuntimeStats(broker));
        call("queryConsumeTimeSpan", () -> admin.queryConsumeTimeSpan(topic, group));
        call("queryTopicConsumeByWho", () -> admin.queryTopicConsumeByWho(topic));
        call("getConsumeStatus", () -> admin.getConsumeStatus(topic, group, ""));
        String client = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        call("getConsumerRunningInfo", () -> admin.getConsumerRunningInfo(group, client, false));
        call("consumeMessageDirectly", () -> admin.consumeMessageDirectly(group, client, topic, id));
        call("fetchConsumeStatsInBroker", () -> admin.fetchConsumeStatsInBroker(broker, false, 5_000));
        // The admin's own method would ask the address inside the message, which is not the recorder's.
        call("resumeCheckHalfMessage", () -> reflect(api, "resumeCheckHalfMessage", broker, topic, id, 5_000L));
        call("queryCorrectionOffset", () -> api.queryCorrectionOffset(broker, topic, group, Set.of("other"), 5_000));
        call("cloneGroupOffset", () -> reflect(api, "cloneGroupOffset", broker, group, group + "Copy", topic, true, 5_000L));
        byte[] filter = "class Filter {}".getBytes();
        call("registerMessageFilterClass",
            () -> reflect(api, "registerMessageFilterClass", broker, group, topic, "Filter", 7, filter, 5_000L));
        call("queryTopicsByConsumer", () -> reflect(api, "queryTopicsByConsumer", broker, group, 5_000L));
        call("querySubscriptionByConsumer",
            () -> reflect(api, "querySubscriptionByConsumer", broker, group, topic, 5_000L));
        call("getSubscriptionGroupConfig", () -> reflect(api, "getSubscriptionGroupConfig", broker, group, 5_000L));
        call("getTopicConfig", () -> reflect(api, "getTopicConfig", broker, topic, 5_000L));
        call("queryConsumeQueue", () -> admin.queryConsumeQueue(broker, topic, queue.getQueueId(), 0, 5, group));
        call("createTopic", () -> createTopic(broker));
        call("deleteTopicInBroker", () -> {
            admin.deleteTopicInBroker(Set.of(broker), "CallsTopic");
            return "done";
        });
        Thread.sleep(6_000);  // consumers commit every 5 s, and an offset that was never committed cannot be reset
        call("resetOffsetByTimestamp", () -> admin.resetOffsetByTimestamp(topic, group, now, true));
        consumer.shutdown();
        producer.shutdown();
        admin.shutdown();
        System.out.println("done");
        System.exit(0);
    }

    private static DefaultMQPushConsumer consumer(String nameserver, String topic, String group) throws Exception {
        DefaultMQProducer replier = new DefaultMQProducer("calls-replier");
        replier.setNamesrvAddr(nameserver);
        replier.setInstanceName("calls-replier");
        replier.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameserver);
        consumer.setInstanceName("calls-consumer");
        consumer.subscribe(topic, MessageSelector.bySql("number is null or number between 0 and 100"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt each : messages) {
                if ("ask".equals(each.getTags())) {
                    try {
                        replier.send(MessageUtil.createReplyMessage(each, "answer".getBytes()), 3_000);
                    } catch (Exception error) {
                        System.out.println("result reply " + error);
                    }
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    private static String hex(String port) {
        return String.format("%08X", Integer.parseInt(port));
    }

    private static void call(String name, Callable<Object> body) {
        try {
            Object value = body.call();
            System.out.println("result " + name + " " + (value == null ? "null" : value.getClass().getSimpleName()));
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.out.println("result " + name + " refused: " + String.valueOf(cause.getMessage()).replace('\n', ' '));
        }
    }

    /** 5.x wants attributes too. */
    private static Object createTopic(String broker) throws Exception {
        try {
            return reflect(admin, "createTopic", broker, "CallsTopic", 4, Collections.emptyMap());
        } catch (NoSuchMethodException old) {
            return reflect(admin, "createTopic", broker, "CallsTopic", 4);
        }
    }

    /**
     * A method that only one of the versions has, or that has other parameters in each: those of the given values that
     * fit, in their order. 4.9 does not want a topic where 5.x does.
     */
    private static Object reflect(Object target, String name, Object... given) throws Exception {
        for (Method method : target.getClass().getMethods()) {
            List<Object> values = new ArrayList<>(Arrays.asList(given));
            if (method.getName().equals(name) && method.getParameterCount() == given.length - 1
                && name.equals("resumeCheckHalfMessage")) {
                values.remove(1);
            }
            if (method.getName().equals(name) && method.getParameterCount() == values.size() && fit(method, values)) {
                return method.invoke(target, values.toArray());
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static boolean fit(Method method, List<Object> values) {
        for (int i = 0; i < values.size(); i++) {
            Class<?> type = method.getParameterTypes()[i];
            if (!type.isPrimitive() && !type.isInstance(values.get(i))) {
                return false;
            }
        }
        return true;
    }
}
