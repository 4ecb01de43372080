package org.apache.rocketmq.test.base;

import java.util.Iterator;
import java.util.List;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.logging.InternalLogger;
import org.apache.rocketmq.logging.InternalLoggerFactory;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.test.util.MQAdmin;

/**
 * Stands in for the class of the same name in upstream's test jar, which starts servers inside the JVM of the tests.
 * This one starts nothing: the tests get the addresses and names of servers that already run.
 *
 * Properties: refmq.nameserver.port, and refmq.brokers with the names of two brokers, separated by a comma.
 */
public class IntegrationTestBase {
    public static InternalLogger logger = InternalLoggerFactory.getLogger(IntegrationTestBase.class);

    private static final int QUEUES = 8;
    private static final Iterator<String> BROKERS = List.of(System.getProperty("refmq.brokers").split(",")).iterator();

    /** Never started: the tests ask it for its port. */
    public static NamesrvController createAndStartNamesrv() {
        NettyServerConfig listens = new NettyServerConfig();
        listens.setListenPort(Integer.getInteger("refmq.nameserver.port"));
        return new NamesrvController(new NamesrvConfig(), listens);
    }

    /** Never started: the tests ask it for the names of broker and cluster. */
    public static BrokerController createAndStartBroker(String nameserver) {
        BrokerConfig config = new BrokerConfig();
        config.setBrokerName(BROKERS.next());
        config.setNamesrvAddr(nameserver);
        return new BrokerController(config, new NettyServerConfig(), new NettyClientConfig(), new MessageStoreConfig());
    }

    public static boolean initTopic(String topic, String nameserver, String cluster) {
        return initTopic(topic, nameserver, cluster, QUEUES);
    }

    public static boolean initTopic(String topic, String nameserver, String cluster, int queues) {
        return MQAdmin.createTopic(nameserver, cluster, topic, queues);
    }
}
