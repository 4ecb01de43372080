package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// What has a name and can be stopped: producers and consumers.
type stoppable interface{ Shutdown() error }

var (
	named      = map[string]stoppable{}
	namedGuard sync.Mutex
)

func remember(name string, thing stoppable) {
	namedGuard.Lock()
	defer namedGuard.Unlock()
	named[name] = thing
}

func find(name string) stoppable {
	namedGuard.Lock()
	defer namedGuard.Unlock()
	return named[name]
}

func stop(c Command) (Fields, error) {
	thing := find(c.Name)
	if thing == nil {
		return nil, fmt.Errorf("nothing is called %s", c.Name)
	}
	return Fields{}, thing.Shutdown()
}

// decisions answers for local transactions: what to say at once, and what to say when the broker asks.
type decisions struct{}

var states = map[string]primitive.LocalTransactionState{
	"commit":   primitive.CommitMessageState,
	"rollback": primitive.RollbackMessageState,
	"unknown":  primitive.UnknowState,
}

func (decisions) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return states[message.GetProperty("decision")]
}

func (decisions) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	say(Fields{"event": "check", "body": string(message.Body), "id": message.TransactionId})
	return states[message.GetProperty("check")]
}

// keys sign every request of a client that is told to.
var keys = primitive.Credentials{AccessKey: "someone", SecretKey: "of no importance"}

func tracing(c Command) *primitive.TraceConfig {
	resolver := primitive.NewPassthroughResolver([]string{c.Nameserver})
	return &primitive.TraceConfig{GroupName: c.Group, Access: primitive.Local, Resolver: resolver}
}

func startProducer(c Command) (Fields, error) {
	options := []producer.Option{
		producer.WithGroupName(c.Group),
		producer.WithInstanceName(c.Name),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.Nameserver})),
		producer.WithRetry(1),
	}
	if c.Sharding != "" {
		options = append(options, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	}
	if c.Compression > 0 {
		options = append(options, producer.WithCompressMsgBodyOverHowmuch(c.Compression))
	}
	if c.Namespace != "" {
		options = append(options, producer.WithNamespace(c.Namespace))
	}
	if c.Signed {
		options = append(options, producer.WithCredentials(keys))
	}
	if c.Trace {
		options = append(options, producer.WithTrace(tracing(c)))
	}
	if c.How == "transaction" {
		started, err := rocketmq.NewTransactionProducer(decisions{}, options...)
		if err != nil {
			return nil, err
		}
		remember(c.Name, started)
		return Fields{}, started.Start()
	}
	started, err := rocketmq.NewProducer(options...)
	if err != nil {
		return nil, err
	}
	remember(c.Name, started)
	return Fields{}, started.Start()
}

func message(c Command, body string) *primitive.Message {
	made := primitive.NewMessage(c.Topic, []byte(body))
	made.WithProperties(c.Properties)
	if c.Tag != "" {
		made.WithTag(c.Tag)
	}
	if c.Key != "" {
		made.WithKeys([]string{c.Key})
	}
	if c.Delay > 0 {
		made.WithDelayTimeLevel(c.Delay)
	}
	if c.Sharding != "" {
		made.WithShardingKey(c.Sharding)
	}
	return made
}

func described(result *primitive.SendResult) Fields {
	queue := -1
	if result.MessageQueue != nil {
		queue = result.MessageQueue.QueueId
	}
	return Fields{
		"status": int(result.Status), "id": result.MsgID, "offset_id": result.OffsetMsgID,
		"queue": queue, "offset": result.QueueOffset, "transaction": result.TransactionID,
	}
}

func send(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.Producer)
	if !fits {
		return nil, fmt.Errorf("no producer is called %s", c.Name)
	}
	wait, cancel := context.WithTimeout(context.Background(), c.timeout())
	defer cancel()
	switch c.How {
	case "oneway":
		return Fields{}, from.SendOneWay(wait, message(c, c.Body))
	case "async":
		type outcome struct {
			result *primitive.SendResult
			err    error
		}
		done := make(chan outcome, 2)
		callback := func(_ context.Context, result *primitive.SendResult, err error) { done <- outcome{result, err} }
		if err := from.SendAsync(wait, callback, message(c, c.Body)); err != nil {
			return nil, err
		}
		select {
		case got := <-done:
			if got.err != nil {
				return nil, got.err
			}
			return described(got.result), nil
		case <-wait.Done():
			return nil, errors.New("no callback came")
		}
	default:
		result, err := from.SendSync(wait, message(c, c.Body))
		if err != nil {
			return nil, err
		}
		return described(result), nil
	}
}

func sendBatch(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.Producer)
	if !fits {
		return nil, fmt.Errorf("no producer is called %s", c.Name)
	}
	var messages []*primitive.Message
	for _, body := range c.Bodies {
		messages = append(messages, message(c, body))
	}
	result, err := from.SendSync(context.Background(), messages...)
	if err != nil {
		return nil, err
	}
	return described(result), nil
}

func sendRequest(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.Producer)
	if !fits {
		return nil, fmt.Errorf("no producer is called %s", c.Name)
	}
	reply, err := from.Request(context.Background(), c.timeout(), message(c, c.Body))
	if err != nil {
		return nil, err
	}
	return Fields{"body": string(reply.Body)}, nil
}

func sendInTransaction(c Command) (Fields, error) {
	from, fits := find(c.Name).(rocketmq.TransactionProducer)
	if !fits {
		return nil, fmt.Errorf("no transaction producer is called %s", c.Name)
	}
	half := message(c, c.Body)
	half.WithProperty("decision", c.Decision)
	half.WithProperty("check", c.Check)
	result, err := from.SendMessageInTransaction(context.Background(), half)
	if err != nil {
		return nil, err
	}
	return described(result.SendResult), nil
}
