package main

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func with(c Command, work func(admin.Admin) (Fields, error)) (Fields, error) {
	opened, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{c.Nameserver})))
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return work(opened)
}

func createTopic(c Command) (Fields, error) {
	return with(c, func(a admin.Admin) (Fields, error) {
		return Fields{}, a.CreateTopic(
			context.Background(),
			admin.WithTopicCreate(c.Topic), admin.WithBrokerAddrCreate(c.Broker),
			admin.WithReadQueueNums(c.Queues), admin.WithWriteQueueNums(c.Queues),
		)
	})
}

func deleteTopic(c Command) (Fields, error) {
	return with(c, func(a admin.Admin) (Fields, error) {
		return Fields{}, a.DeleteTopic(context.Background(), admin.WithTopicDelete(c.Topic))
	})
}

func listTopics(c Command) (Fields, error) {
	return with(c, func(a admin.Admin) (Fields, error) {
		list, err := a.FetchAllTopicList(context.Background())
		if err != nil {
			return nil, err
		}
		return Fields{"topics": list.TopicList}, nil
	})
}

func listGroups(c Command) (Fields, error) {
	return with(c, func(a admin.Admin) (Fields, error) {
		groups, err := a.GetAllSubscriptionGroup(context.Background(), c.Broker, 5*time.Second)
		if err != nil {
			return nil, err
		}
		names := []string{}
		for name := range groups.SubscriptionGroupTable {
			names = append(names, name)
		}
		return Fields{"groups": names}, nil
	})
}

func listQueues(c Command) (Fields, error) {
	return with(c, func(a admin.Admin) (Fields, error) {
		queues, err := a.FetchPublishMessageQueues(context.Background(), c.Topic)
		if err != nil {
			return nil, err
		}
		numbers := []int{}
		for _, queue := range queues {
			numbers = append(numbers, queue.QueueId)
		}
		return Fields{"queues": numbers}, nil
	})
}
