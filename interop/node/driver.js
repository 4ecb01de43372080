// Drives the Node client by lines of JSON, as interop/go/main.go does for the Go client.
'use strict';

const readline = require('readline');
const { Consumer, Message, Producer } = require('ali-ons');

const quiet = { info() {}, debug() {}, warn() {}, error() {} };
const named = new Map();

function say(line) {
  process.stdout.write(JSON.stringify(line) + '\n');
}

// The client wants an HTTP client and keys even when it is told its nameserver and nobody asks for them.
function options(command) {
  return {
    httpclient: { request: async () => { throw new Error('nothing is to be fetched'); } },
    accessKeyId: 'none',
    accessKeySecret: 'none',
    nameSrv: command.nameserver,
    instanceName: command.name,
    logger: quiet,
    rebalanceInterval: 1000,
    persistConsumerOffsetInterval: 1000,
    namespace: command.namespace || '',
  };
}

async function startProducer(command) {
  const more = { producerGroup: command.group, retryTimesWhenSendFailed: 0 };
  if (command.compression) more.compressMsgBodyOverHowmuch = command.compression;
  const producer = new Producer(Object.assign(options(command), more));
  producer.on('error', error => say({ event: 'error', error: error.message }));
  await producer.ready();
  named.set(command.name, producer);
  return {};
}

async function send(command) {
  const message = new Message(command.topic, command.tag || '', command.body);
  if (command.key) message.keys = [command.key];
  if (command.sharding) message.shardingKey = command.sharding;
  if (command.delay) message.delayTimeLevel = command.delay;
  Object.assign(message.properties, command.properties || {});
  const sent = await named.get(command.name).send(message);
  return {
    status: sent.sendStatus, id: sent.msgId, offset: Number(sent.queueOffset),
    queue: sent.messageQueue && sent.messageQueue.queueId,
  };
}

function tell(name, message) {
  return {
    event: 'message', consumer: name, topic: message.topic, body: message.body.toString(), tag: message.tags || '',
    keys: message.keys || '', id: message.msgId, queue: message.queueId, offset: Number(message.queueOffset),
    times: message.reconsumeTimes, properties: message.properties,
  };
}

async function startConsumer(command) {
  const more = { consumerGroup: command.group, isBroadcast: !!command.broadcast };
  more.consumeFromWhere = command.from === 'last' ? 'CONSUME_FROM_LAST_OFFSET' : 'CONSUME_FROM_FIRST_OFFSET';
  if (command.retries_max) more.maxReconsumeTimes = command.retries_max;
  const consumer = new Consumer(Object.assign(options(command), more));
  const seen = new Map();
  consumer.on('error', error => say({ event: 'error', consumer: command.name, error: error.message }));
  const expression = command.sql
    ? { expressionType: 'SQL92', subString: command.expression }
    : command.expression || '*';
  consumer.subscribe(command.topic, expression, async message => {
    say(tell(command.name, message));
    const body = message.body.toString();
    seen.set(body, (seen.get(body) || 0) + 1);
    if (command.fail < 0 || seen.get(body) <= (command.fail || 0)) throw new Error(`not yet: ${body}`);
  });
  await consumer.ready();
  named.set(command.name, consumer);
  return {};
}

async function stop(command) {
  await named.get(command.name).close();
  named.delete(command.name);
  return {};
}

const commands = { producer: startProducer, send, consumer: startConsumer, stop };

readline.createInterface({ input: process.stdin }).on('line', async line => {
  const command = JSON.parse(line);
  try {
    const run = commands[command.do];
    if (!run) throw new Error(`there is no command ${command.do}`);
    say({ id: command.id, result: await run(command) });
  } catch (error) {
    say({ id: command.id, error: error.message });
  }
}).on('close', () => process.exit(0));
