// The Go SDK's client against a live server. Prints TAP.
//
// usage: interop URL; the server at URL has the agents demo (default), steady (the demo, slowly) and hello.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
)

// Ends a test that hangs; far above what a busy machine needs.
const hang = 2 * time.Minute

type binding struct {
	name     string
	protocol a2a.TransportProtocol
	version  a2a.ProtocolVersion
}

var bindings = []binding{
	{"1.0 JSON-RPC", a2a.TransportProtocolJSONRPC, a2a.Version},
	{"1.0 REST", a2a.TransportProtocolHTTPJSON, a2a.Version},
	{"0.3 JSON-RPC", a2a.TransportProtocolJSONRPC, a2av0.Version},
	{"0.3 REST", a2a.TransportProtocolHTTPJSON, a2av0.Version},
}

var failed, count int

func test(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	count++
	if err := run(ctx); err != nil {
		failed++
		fmt.Printf("not ok %d - %s\n# %s\n", count, name, strings.ReplaceAll(err.Error(), "\n", "\n# "))
		return
	}
	fmt.Printf("ok %d - %s\n", count, name)
}

func (b binding) client(ctx context.Context, url string) (*a2aclient.Client, error) {
	return a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{{URL: url, ProtocolBinding: b.protocol, ProtocolVersion: b.version}},
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{}), a2av0.WithRESTTransport(a2av0.RESTTransportConfig{}))
}

func user(text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
}

func answerTo(task *a2a.Task, text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart(text))}
}

func text(message *a2a.Message) string {
	if message == nil {
		return ""
	}
	var all string
	for _, part := range message.Parts {
		all += part.Text()
	}
	return all
}

func send(ctx context.Context, client *a2aclient.Client, request *a2a.SendMessageRequest) (*a2a.Task, error) {
	result, err := client.SendMessage(ctx, request)
	if err != nil {
		return nil, err
	}
	task, isTask := result.(*a2a.Task)
	if !isTask {
		return nil, fmt.Errorf("expected a task, got %T", result)
	}
	return task, nil
}

func expectStatus(task *a2a.Task, state a2a.TaskState, want string) error {
	if task.Status.State != state || !strings.Contains(text(task.Status.Message), want) {
		return fmt.Errorf("expected %s with %q, got %s with %q", state, want, task.Status.State, text(task.Status.Message))
	}
	return nil
}

// What a client has seen of one stream.
type seen struct {
	first  a2a.Event
	last   a2a.TaskStatus
	answer string // text of the artifacts
	events int
}

func follow(events func(func(a2a.Event, error) bool)) (s seen, err error) {
	for event, e := range events {
		if e != nil {
			return s, e
		}
		if s.events++; s.events == 1 {
			s.first = event
		}
		switch e := event.(type) {
		case *a2a.Task:
			s.last = e.Status
		case *a2a.TaskStatusUpdateEvent:
			s.last = e.Status
		case *a2a.TaskArtifactUpdateEvent:
			for _, part := range e.Artifact.Parts {
				s.answer += part.Text()
			}
		}
	}
	return s, nil
}

func (b binding) tests(url string) {
	named := func(name string, run func(ctx context.Context, client *a2aclient.Client) error) {
		test("a2a-go "+b.name+": "+name, func(ctx context.Context) error {
			client, err := b.client(ctx, url)
			if err != nil {
				return err
			}
			defer client.Destroy()
			return run(ctx, client)
		})
	}

	named("a task with an answer, read again", func(ctx context.Context, client *a2aclient.Client) error {
		task, err := send(ctx, client, user("status"))
		if err != nil {
			return err
		}
		again, err := client.GetTask(ctx, &a2a.GetTaskRequest{ID: task.ID})
		if err != nil {
			return err
		}
		if text(again.Status.Message) == "" || text(again.Status.Message) != text(task.Status.Message) {
			return fmt.Errorf("expected the same text twice, got %q and %q", text(task.Status.Message), text(again.Status.Message))
		}
		return expectStatus(again, a2a.TaskStateCompleted, "")
	})

	named("a streamed artifact is one text part in the Task", func(ctx context.Context, client *a2aclient.Client) error {
		task, err := send(ctx, client, user("stream"))
		if err != nil {
			return err
		}
		if len(task.Artifacts) != 1 || len(task.Artifacts[0].Parts) != 1 {
			return fmt.Errorf("expected one artifact with one part, got %+v", task.Artifacts)
		}
		if task.Artifacts[0].Parts[0].Text() != text(task.Status.Message) {
			return fmt.Errorf("the artifact is %q, the final text %q", task.Artifacts[0].Parts[0].Text(), text(task.Status.Message))
		}
		return nil
	})

	named("a stream: its pieces are the final text", func(ctx context.Context, client *a2aclient.Client) error {
		s, err := follow(client.SendStreamingMessage(ctx, user("stream")))
		if err != nil {
			return err
		}
		if s.last.State != a2a.TaskStateCompleted || s.answer == "" || s.answer != text(s.last.Message) {
			return fmt.Errorf("state %s, pieces %q, final text %q", s.last.State, s.answer, text(s.last.Message))
		}
		return nil
	})

	named("a question gets answered", func(ctx context.Context, client *a2aclient.Client) error {
		task, err := send(ctx, client, user("ask"))
		if err != nil {
			return err
		}
		if err := expectStatus(task, a2a.TaskStateInputRequired, "name"); err != nil {
			return err
		}
		task, err = send(ctx, client, answerTo(task, "Ann"))
		if err != nil {
			return err
		}
		return expectStatus(task, a2a.TaskStateCompleted, "Ann")
	})

	named("a question gets answered in a stream that does not start with the question's state", func(ctx context.Context, client *a2aclient.Client) error {
		task, err := send(ctx, client, user("ask"))
		if err != nil {
			return err
		}
		s, err := follow(client.SendStreamingMessage(ctx, answerTo(task, "Ann")))
		if err != nil {
			return err
		}
		if first, isTask := s.first.(*a2a.Task); isTask && first.Status.State == a2a.TaskStateInputRequired {
			return fmt.Errorf("the first event is a task in the state %s", first.Status.State)
		}
		if s.last.State != a2a.TaskStateCompleted || !strings.Contains(text(s.last.Message), "Ann") {
			return fmt.Errorf("state %s, text %q", s.last.State, text(s.last.Message))
		}
		return nil
	})

	named("a task that fails has its reason in status.message", func(ctx context.Context, client *a2aclient.Client) error {
		task, err := send(ctx, client, user("fail"))
		if err != nil {
			return err
		}
		return expectStatus(task, a2a.TaskStateFailed, "asked to fail")
	})

	named("an immediate answer, a subscription, a cancel", func(ctx context.Context, client *a2aclient.Client) error {
		request := user("slow 60")
		request.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
		task, err := send(ctx, client, request)
		if err != nil {
			return err
		}
		if task.Status.State.Terminal() {
			return fmt.Errorf("the task is %s already", task.Status.State)
		}
		canceled := make(chan error, 1)
		isCanceled := false
		var last a2a.TaskState
		for event, err := range client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: task.ID}) {
			if err != nil {
				return err
			}
			if !isCanceled { // the subscription is open
				isCanceled = true
				go func() {
					_, err := client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: task.ID})
					canceled <- err
				}()
			}
			switch e := event.(type) {
			case *a2a.Task:
				last = e.Status.State
			case *a2a.TaskStatusUpdateEvent:
				last = e.Status.State
			}
		}
		if err := <-canceled; err != nil {
			return err
		}
		if last != a2a.TaskStateCanceled {
			return fmt.Errorf("the subscription ended with %s", last)
		}
		return nil
	})

	named("a refused stream is an error", func(ctx context.Context, client *a2aclient.Client) error {
		request := user("hi")
		request.Message.TaskID = a2a.NewTaskID()
		s, err := follow(client.SendStreamingMessage(ctx, request))
		if err == nil {
			return fmt.Errorf("%d events and no error for a message to an unknown task", s.events)
		}
		// a2a-go's 0.3 REST client reads every error as an internal error
		if b.name != "0.3 REST" && !errors.Is(err, a2a.ErrTaskNotFound) {
			return fmt.Errorf("expected %v, got %v", a2a.ErrTaskNotFound, err)
		}
		s, err = follow(client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: a2a.NewTaskID()}))
		if err == nil {
			return fmt.Errorf("%d events and no error for a subscription to an unknown task", s.events)
		}
		return nil
	})

	if b.name != "0.3 JSON-RPC" { // has no list
		named("a list, page by page", func(ctx context.Context, client *a2aclient.Client) error {
			known := map[a2a.TaskID]bool{}
			contextID := a2a.NewContextID()
			for range 3 {
				request := user("status")
				request.Message.ContextID = contextID
				task, err := send(ctx, client, request)
				if err != nil {
					return err
				}
				known[task.ID] = true
			}
			request := &a2a.ListTasksRequest{ContextID: contextID, PageSize: 2}
			for pages := 1; ; pages++ {
				page, err := client.ListTasks(ctx, request)
				if err != nil {
					return err
				}
				for _, task := range page.Tasks {
					if !known[task.ID] {
						return fmt.Errorf("task %s is unknown or listed twice", task.ID)
					}
					delete(known, task.ID)
				}
				if request.PageToken = page.NextPageToken; request.PageToken == "" {
					if pages != 2 || len(known) != 0 {
						return fmt.Errorf("%d pages, %d tasks not listed", pages, len(known))
					}
					return nil
				}
			}
		})
	}
}

func main() {
	url := os.Args[1]
	test("a2a-go: the card names both bindings of 1.0, and the client works with it", func(ctx context.Context) error {
		card, err := agentcard.DefaultResolver.Resolve(ctx, url)
		if err != nil {
			return err
		}
		client, err := a2aclient.NewFromCard(ctx, card)
		if err != nil {
			return err
		}
		defer client.Destroy()
		task, err := send(ctx, client, user("status"))
		if err != nil {
			return err
		}
		return expectStatus(task, a2a.TaskStateCompleted, "")
	})
	test("a2a-go: an agent that answers with a Message", func(ctx context.Context) error {
		client, err := bindings[0].client(ctx, url+"/agents/hello/a2a")
		if err != nil {
			return err
		}
		defer client.Destroy()
		result, err := client.SendMessage(ctx, user("hi"))
		if err != nil {
			return err
		}
		message, isMessage := result.(*a2a.Message)
		if !isMessage || text(message) == "" {
			return fmt.Errorf("expected a message, got %T", result)
		}
		return nil
	})
	for _, b := range bindings {
		b.tests(url)
	}
	fmt.Printf("1..%d\n", count)
	if failed > 0 {
		os.Exit(1)
	}
}
