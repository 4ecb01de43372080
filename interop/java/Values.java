import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullCallback;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * JSON values and the types of the client library.
 *
 *   message    {topic, body, tags, keys, delay, properties}; for a large one size instead of body, random or not;
 *              set: {property -> value} for any other setter that it has
 *   received   {received: unique id}: a message that came before
 *   queue      {topic, broker, queue}
 *   selector   {sql: text}, {tags: text}; for sending {hash: true}
 *   callback   {callback: tag}: what comes is told as an event of that name
 *   map        {pairs: [[queue, number] ...]}, anything else as it is
 *   hook       {accessKey, secretKey}: signs every request
 */
final class Values {
    private static final int SHOWN_BODY_MAX = 10_000;
    private static final int RECEIVED_MAX = 10_000;
    private static final Map<String, MessageExt> RECEIVED = Collections.synchronizedMap(new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, MessageExt> eldest) {
            return size() > RECEIVED_MAX;
        }
    });

    /** The value as the wanted type; IllegalArgumentException when it cannot be one. */
    static Object read(Object given, Class<?> type) {
        if (given == null && !type.isPrimitive()) {
            return null;
        }
        if (given instanceof Boolean && (type == boolean.class || type == Boolean.class)) {
            return given;
        }
        if (given instanceof Number && (type.isPrimitive() || Number.class.isAssignableFrom(type))) {
            return number((Number) given, type);
        }
        if (given instanceof String) {
            return text((String) given, type);
        }
        if (given instanceof List && Collection.class.isAssignableFrom(type)) {
            Collection<Object> values = type.isAssignableFrom(ArrayList.class) ? new ArrayList<>() : new HashSet<>();
            for (Object each : (List<Object>) given) {
                boolean queue = each instanceof Map && ((Map<?, ?>) each).containsKey("broker");
                values.add(read(each, queue ? MessageQueue.class : each instanceof Map ? Message.class : String.class));
            }
            return values;
        }
        if (given instanceof Map) {
            return composed((Map<String, Object>) given, type);
        }
        if (type == Object.class) {
            return given;
        }
        throw new IllegalArgumentException(given + " is no " + type);
    }

    private static Object number(Number given, Class<?> type) {
        if (type == int.class || type == Integer.class) {
            return given.intValue();
        }
        if (type == long.class || type == Long.class) {
            return given.longValue();
        }
        throw new IllegalArgumentException(given + " is no " + type);
    }

    private static Object text(String given, Class<?> type) {
        if (type == String.class || type == Object.class) {
            return given;
        }
        if (type.isEnum()) {
            return Enum.valueOf((Class<? extends Enum>) type, given);
        }
        if (type.isInterface() && given.startsWith("org.apache.rocketmq.")) {
            try {
                return type.cast(Class.forName(given).getConstructor().newInstance());
            } catch (ReflectiveOperationException error) {
                throw new IllegalArgumentException(error);
            }
        }
        throw new IllegalArgumentException(given + " is no " + type);
    }

    private static Object composed(Map<String, Object> given, Class<?> type) {
        if (type == MessageQueue.class && given.containsKey("broker")) {
            return new MessageQueue((String) given.get("topic"), (String) given.get("broker"),
                ((Number) given.get("queue")).intValue());
        }
        if (type == Message.class && given.containsKey("topic") && !given.containsKey("broker")) {
            return message(given);
        }
        if (type.isAssignableFrom(MessageExt.class) && given.containsKey("received")) {
            return RECEIVED.get((String) given.get("received"));
        }
        if (type == MessageSelector.class && given.containsKey("sql")) {
            return MessageSelector.bySql((String) given.get("sql"));
        }
        if (type == MessageSelector.class && given.containsKey("tags")) {
            return MessageSelector.byTag((String) given.get("tags"));
        }
        if (type == MessageQueueSelector.class && given.containsKey("hash")) {
            return new SelectMessageQueueByHash();
        }
        if (type.isInterface() && type.isAssignableFrom(Callback.class) && given.containsKey("callback")) {
            return new Callback((String) given.get("callback"));
        }
        if (type == RPCHook.class && given.containsKey("accessKey")) {
            return new AclClientRPCHook(
                new SessionCredentials((String) given.get("accessKey"), (String) given.get("secretKey")));
        }
        if (type == Map.class && !given.containsKey("pairs")) {
            return given;
        }
        if (type == Map.class) {
            Map<Object, Object> pairs = new HashMap<>();
            for (Object pair : (List<Object>) given.get("pairs")) {
                List<Object> both = (List<Object>) pair;
                pairs.put(read(both.get(0), MessageQueue.class), ((Number) both.get(1)).longValue());
            }
            return pairs;
        }
        throw new IllegalArgumentException(given + " is no " + type);
    }

    private static Message message(Map<String, Object> given) {
        byte[] body;
        if (given.containsKey("size")) {
            body = new byte[((Number) given.get("size")).intValue()];
            if (Boolean.TRUE.equals(given.get("random"))) {
                new Random(body.length).nextBytes(body);
            }
        } else {
            body = ((String) given.get("body")).getBytes(StandardCharsets.UTF_8);
        }
        Message message = new Message((String) given.get("topic"), body);
        if (given.get("tags") != null) {
            message.setTags((String) given.get("tags"));
        }
        if (given.get("keys") != null) {
            message.setKeys((String) given.get("keys"));
        }
        if (given.get("delay") != null) {
            message.setDelayTimeLevel(((Number) given.get("delay")).intValue());
        }
        ((Map<String, Object>) given.getOrDefault("properties", Map.of()))
            .forEach((key, value) -> message.putUserProperty(key, String.valueOf(value)));
        ((Map<String, Object>) given.getOrDefault("set", Map.of())).forEach((key, value) -> Driver.set(message, key, value));
        return message;
    }

    /** Something that JSON can hold. */
    static Object show(Object value) {
        if (value instanceof Message) {
            return showMessage((Message) value);
        }
        if (value instanceof MessageQueue) {
            MessageQueue queue = (MessageQueue) value;
            return of("topic", queue.getTopic(), "broker", queue.getBrokerName(), "queue", queue.getQueueId());
        }
        if (value instanceof SendResult) {
            SendResult sent = (SendResult) value;
            Object decision = sent instanceof TransactionSendResult
                ? String.valueOf(((TransactionSendResult) sent).getLocalTransactionState()) : null;
            return of("status", sent.getSendStatus().name(), "id", sent.getMsgId(), "offsetId", sent.getOffsetMsgId(),
                "queue", show(sent.getMessageQueue()), "offset", sent.getQueueOffset(), "region", sent.getRegionId(),
                "transaction", sent.getTransactionId(), "decision", decision);
        }
        if (value instanceof PullResult) {
            PullResult pulled = (PullResult) value;
            return of("status", pulled.getPullStatus().name(), "next", pulled.getNextBeginOffset(),
                "min", pulled.getMinOffset(), "max", pulled.getMaxOffset(), "messages", show(pulled.getMsgFoundList()));
        }
        if (value instanceof QueryResult) {
            return show(((QueryResult) value).getMessageList());
        }
        if (value instanceof Collection) {
            List<Object> shown = new ArrayList<>();
            ((Collection<?>) value).forEach(each -> shown.add(show(each)));
            return shown;
        }
        return value == null || value instanceof Number || value instanceof Boolean ? value : String.valueOf(value);
    }

    private static Map<String, Object> showMessage(Message message) {
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        CRC32 crc = new CRC32();
        crc.update(body);
        Map<String, Object> shown = of("topic", message.getTopic(), "tags", message.getTags(), "keys", message.getKeys(),
            "size", body.length, "crc", crc.getValue(), "properties", message.getProperties(),
            "body", body.length <= SHOWN_BODY_MAX ? new String(body, StandardCharsets.UTF_8) : null);
        if (message instanceof MessageExt) {
            MessageExt received = (MessageExt) message;
            RECEIVED.put(received.getMsgId(), received);
            shown.putAll(of("id", received.getMsgId(), "broker", received.getBrokerName(),
                "queue", received.getQueueId(), "offset", received.getQueueOffset(),
                "times", received.getReconsumeTimes(), "born", received.getBornTimestamp(),
                "stored", received.getStoreTimestamp(), "storeSize", received.getStoreSize()));
        }
        return shown;
    }

    static Map<String, Object> of(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }

    /** Tells what came, or what went wrong, as an event. */
    static final class Callback implements SendCallback, PullCallback, RequestCallback {
        private final String tag;

        Callback(String tag) {
            this.tag = tag;
        }

        @Override
        public void onSuccess(SendResult result) {
            Driver.event("sent", tag, "value", show(result));
        }

        @Override
        public void onSuccess(PullResult result) {
            Driver.event("pulled", tag, "value", show(result));
        }

        @Override
        public void onSuccess(Message message) {
            Driver.event("reply", tag, "value", show(message));
        }

        @Override
        public void onException(Throwable error) {
            Driver.event("failed", tag, "value", Driver.failure(error));
        }
    }
}
