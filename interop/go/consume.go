package main

import (
	"context"
	"fmt"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var starts = map[string]consumer.ConsumeFromWhere{
	"":      consumer.ConsumeFromFirstOffset,
	"first": consumer.ConsumeFromFirstOffset,
	"last":  consumer.ConsumeFromLastOffset,
}

func selector(c Command) consumer.MessageSelector {
	if c.SQL {
		return consumer.MessageSelector{Type: consumer.SQL92, Expression: c.Expression}
	}
	expression := c.Expression
	if expression == "" {
		expression = "*"
	}
	return consumer.MessageSelector{Type: consumer.TAG, Expression: expression}
}

func consumerOptions(c Command) []consumer.Option {
	options := []consumer.Option{
		consumer.WithGroupName(c.Group),
		consumer.WithInstance(c.Name),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.Nameserver})),
		consumer.WithConsumeFromWhere(starts[c.From]),
		consumer.WithConsumerOrder(c.Orderly),
	}
	if c.Broadcast {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if c.RetriesMax > 0 {
		options = append(options, consumer.WithMaxReconsumeTimes(int32(c.RetriesMax)))
	}
	if c.Namespace != "" {
		options = append(options, consumer.WithNamespace(c.Namespace))
	}
	if c.Signed {
		options = append(options, consumer.WithCredentials(keys))
	}
	if c.Trace {
		options = append(options, consumer.WithTrace(tracing(c)))
	}
	return options
}

func tell(name string, got *primitive.MessageExt, queue int) Fields {
	return Fields{
		"event": "message", "consumer": name, "topic": got.Topic, "body": string(got.Body), "tag": got.GetTags(),
		"keys": got.GetKeys(), "id": got.MsgId, "offset_id": got.OffsetMsgId, "queue": queue, "offset": got.QueueOffset,
		"times": got.ReconsumeTimes, "properties": got.GetProperties(),
	}
}

// failures counts how often each message has been refused; a message is known by its body.
type failures struct {
	guard sync.Mutex
	times map[string]int
}

func (f *failures) again(body string, wanted int) bool {
	f.guard.Lock()
	defer f.guard.Unlock()
	f.times[body]++
	return wanted < 0 || f.times[body] <= wanted
}

func startConsumer(c Command) (Fields, error) {
	started, err := rocketmq.NewPushConsumer(consumerOptions(c)...)
	if err != nil {
		return nil, err
	}
	var answering rocketmq.Producer
	if c.Reply {
		answering, err = rocketmq.NewProducer(
			producer.WithGroupName(c.Group+"-reply"),
			producer.WithInstanceName(c.Name+"-reply"),
			producer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.Nameserver})),
		)
		if err == nil {
			err = answering.Start()
		}
		if err != nil {
			return nil, err
		}
	}
	failed := &failures{times: map[string]int{}}
	listen := func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, got := range messages {
			queue := -1
			if got.Queue != nil {
				queue = got.Queue.QueueId
			}
			say(tell(c.Name, got, queue))
			if answering != nil {
				if err := reply(answering, got); err != nil {
					say(Fields{"event": "error", "consumer": c.Name, "error": err.Error()})
				}
			}
			if failed.again(string(got.Body), c.Fail) {
				return refused(ctx, c.Orderly), nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := started.Subscribe(c.Topic, selector(c), listen); err != nil {
		return nil, err
	}
	remember(c.Name, started)
	return Fields{}, started.Start()
}

func refused(ctx context.Context, orderly bool) consumer.ConsumeResult {
	if orderly {
		if how, there := primitive.GetOrderlyCtx(ctx); there {
			how.SuspendCurrentQueueTimeMillis = 100
		}
		return consumer.SuspendCurrentQueueAMoment
	}
	if how, there := primitive.GetConcurrentlyCtx(ctx); there {
		how.DelayLevelWhenNextConsume = 1
	}
	return consumer.ConsumeRetryLater
}

func reply(from rocketmq.Producer, got *primitive.MessageExt) error {
	answer, err := consumer.CreateReplyMessage(got, nil)
	if err != nil {
		return err
	}
	answer.Body = append([]byte("re: "), got.Body...)
	_, err = from.SendSync(context.Background(), answer)
	return err
}

func startPoller(c Command) (Fields, error) {
	started, err := rocketmq.NewPullConsumer(consumerOptions(c)...)
	if err != nil {
		return nil, err
	}
	if err := started.Subscribe(c.Topic, selector(c)); err != nil {
		return nil, err
	}
	remember(c.Name, started)
	return Fields{}, started.Start()
}

func poll(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.PullConsumer)
	if !fits {
		return nil, fmt.Errorf("no pull consumer is called %s", c.Name)
	}
	got, err := from.Poll(context.Background(), c.timeout())
	if consumer.IsNoNewMsgError(err) {
		return Fields{"messages": []Fields{}}, nil
	}
	if err != nil {
		return nil, err
	}
	messages := []Fields{}
	for _, one := range got.GetMsgList() {
		messages = append(messages, tell(c.Name, one, got.GetMQ().QueueId))
	}
	from.ACK(context.Background(), got, consumer.ConsumeSuccess)
	return Fields{"messages": messages}, nil
}

func pullFrom(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.PullConsumer)
	if !fits {
		return nil, fmt.Errorf("no pull consumer is called %s", c.Name)
	}
	wait, cancel := context.WithTimeout(context.Background(), c.timeout())
	defer cancel()
	queue := &primitive.MessageQueue{Topic: c.Topic, BrokerName: c.Broker, QueueId: c.Queue}
	got, err := from.PullFrom(wait, queue, c.Offset, c.Count)
	if err != nil {
		return nil, err
	}
	messages := []Fields{}
	for _, one := range got.GetMessageExts() {
		messages = append(messages, tell(c.Name, one, c.Queue))
	}
	return Fields{
		"status": int(got.Status), "next": got.NextBeginOffset, "min": got.MinOffset, "max": got.MaxOffset,
		"messages": messages,
	}, nil
}

func commitOffset(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.PullConsumer)
	if !fits {
		return nil, fmt.Errorf("no pull consumer is called %s", c.Name)
	}
	queue := &primitive.MessageQueue{Topic: c.Topic, BrokerName: c.Broker, QueueId: c.Queue}
	if err := from.UpdateOffset(queue, c.Offset); err != nil {
		return nil, err
	}
	return Fields{}, from.PersistOffset(context.Background(), c.Topic)
}
