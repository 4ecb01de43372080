// Command interop drives the Go client by lines of JSON on stdin; answers and received messages are lines on stdout.
//
//	{"id": 1, "do": "send", "producer": "p", "topic": "T", "body": "hello"}
//	{"id": 1, "result": {"status": 0, ...}}        or {"id": 1, "error": "..."}
//	{"event": "message", "consumer": "c", ...}     whenever a consumer got one
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// Command is one line from stdin; each field belongs to some of the commands.
type Command struct {
	ID          int               `json:"id"`
	Do          string            `json:"do"`
	Name        string            `json:"name"`
	Nameserver  string            `json:"nameserver"`
	Broker      string            `json:"broker"`
	Group       string            `json:"group"`
	Topic       string            `json:"topic"`
	Body        string            `json:"body"`
	Bodies      []string          `json:"bodies"`
	Tag         string            `json:"tag"`
	Key         string            `json:"key"`
	Properties  map[string]string `json:"properties"`
	Delay       int               `json:"delay"`
	Sharding    string            `json:"sharding"`
	How         string            `json:"how"`
	Decision    string            `json:"decision"`
	Check       string            `json:"check"`
	Expression  string            `json:"expression"`
	SQL         bool              `json:"sql"`
	Orderly     bool              `json:"orderly"`
	Broadcast   bool              `json:"broadcast"`
	From        string            `json:"from"`
	Fail        int               `json:"fail"`
	RetriesMax  int               `json:"retries_max"`
	Reply       bool              `json:"reply"`
	Queue       int               `json:"queue"`
	Queues      int               `json:"queues"`
	Offset      int64             `json:"offset"`
	Count       int               `json:"count"`
	TimeoutS    float64           `json:"timeout_s"`
	Compression int               `json:"compression"`
	Namespace   string            `json:"namespace"`
	Signed      bool              `json:"signed"`
	Trace       bool              `json:"trace"`
}

func (c Command) timeout() time.Duration {
	if c.TimeoutS <= 0 {
		return 10 * time.Second
	}
	return time.Duration(c.TimeoutS * float64(time.Second))
}

// Fields is a JSON object.
type Fields map[string]interface{}

var output sync.Mutex

func say(line Fields) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Printf("%s\n", text)
}

var commands = map[string]func(Command) (Fields, error){
	"producer":    startProducer,
	"send":        send,
	"batch":       sendBatch,
	"request":     sendRequest,
	"transaction": sendInTransaction,
	"consumer":    startConsumer,
	"poller":      startPoller,
	"poll":        poll,
	"pull":        pullFrom,
	"commit":      commitOffset,
	"stop":        stop,
	"create":      createTopic,
	"delete":      deleteTopic,
	"topics":      listTopics,
	"groups":      listGroups,
	"queues":      listQueues,
}

func main() {
	rlog.SetLogLevel("error")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<16), 1<<24)
	for lines.Scan() {
		var command Command
		if err := json.Unmarshal(lines.Bytes(), &command); err != nil {
			say(Fields{"id": command.ID, "error": err.Error()})
			continue
		}
		run, known := commands[command.Do]
		if !known {
			say(Fields{"id": command.ID, "error": "there is no command " + command.Do})
			continue
		}
		go func() {
			result, err := run(command)
			if err != nil {
				say(Fields{"id": command.ID, "error": err.Error()})
				return
			}
			say(Fields{"id": command.ID, "result": result})
		}()
	}
}
