import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Reads bytes with RocketMQ's own classes and writes them again: a second opinion on our codecs.
 *
 * Each line of the input is "MODE CLASS HEX", each line of the output "ok HEX" or "error TEXT".
 *
 *   body CLASS    JSON of a body: read as CLASS, written again
 *   frame -       a frame: read, written again
 *   header CLASS  a frame: its ext fields read as CLASS, written again into a new frame
 *   messages -    messages one behind the other: read, written again
 *   inflate -     one message: its body, decompressed
 *   sign KEYS     a frame: signed as a client does, KEYS is access key and secret key with a slash between them
 *   share NAME    lines of text, the first one with client ids, the others with a broker and a queue number: who gets
 *                 what by the strategy NAME, a line of queue numbers (of all lines, from 0) for each client
 */
public class Codec {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // libraries print where they like
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                answer = "ok " + hex(answer(words[0], words[1], bytes(words[2])));
            } catch (Throwable problem) {
                answer = "error " + String.valueOf(problem).replace('\n', ' ').replace('\r', ' ');
            }
            out.println(answer);
            out.flush();
        }
    }

    private static byte[] answer(String mode, String name, byte[] data) throws Exception {
        switch (mode) {
            case "body":
                return RemotingSerializable.encode(RemotingSerializable.decode(data, Class.forName(name)));
            case "frame":
                return array(decoded(data).encode());
            case "header":
                return header(name, decoded(data));
            case "messages":
                return messages(data);
            case "inflate":
                return MessageDecoder.decode(ByteBuffer.wrap(data), true, true).getBody();
            case "sign":
                return signed(name.split("/"), decoded(data));
            case "share":
                return shares(strategy(name), new String(data, StandardCharsets.UTF_8).split("\n"));
            default:
                throw new IllegalArgumentException("unknown mode " + mode);
        }
    }

    private static byte[] header(String name, RemotingCommand command) throws Exception {
        Class<? extends CommandCustomHeader> type = Class.forName(name).asSubclass(CommandCustomHeader.class);
        CommandCustomHeader header = command.decodeCommandCustomHeader(type);
        return array(RemotingCommand.createRequestCommand(command.getCode(), header).encode());
    }

    private static byte[] signed(String[] keys, RemotingCommand command) {
        new AclClientRPCHook(new SessionCredentials(keys[0], keys[1])).doBeforeRequest("", command);
        return array(command.encode());
    }

    private static AllocateMessageQueueStrategy strategy(String name) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(Arrays.asList("r1", "r2")));
                return byRoom;
            default:
                return new AllocateMachineRoomNearby(strategy(name.substring("NEARBY-".length())), new Rooms());
        }
    }

    /** The room is what stands in front of a hyphen. */
    private static class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("-")[0];
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return clientId.split("-")[0];
        }
    }

    private static byte[] shares(AllocateMessageQueueStrategy strategy, String[] lines) {
        List<String> clients = Arrays.asList(lines[0].split(" "));
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 1; i < lines.length; i++) {
            String[] words = lines[i].split(" ");
            queues.add(new MessageQueue("TopicTest", words[0], Integer.parseInt(words[1])));
        }
        StringBuilder text = new StringBuilder();
        for (String client : clients) {
            for (MessageQueue queue : strategy.allocate("group", client, queues, clients)) {
                text.append(queues.indexOf(queue)).append(' ');
            }
            text.append('\n');
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] messages(byte[] data) throws Exception {
        ByteBuffer written = ByteBuffer.allocate(data.length * 2);
        ByteBuffer left = ByteBuffer.wrap(data);
        while (left.hasRemaining()) {
            MessageExt message = MessageDecoder.decode(left, true, false);
            message.setStoreSize(0); // else it is taken for the new size, which 5.3.3 exceeds by one separator
            written.put(MessageDecoder.encode(message, false));
        }
        written.flip();
        return array(written);
    }

    /** A frame without its first length field is what RemotingCommand reads. */
    private static RemotingCommand decoded(byte[] frame) throws Exception {
        return RemotingCommand.decode(ByteBuffer.wrap(frame, 4, frame.length - 4).slice());
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
