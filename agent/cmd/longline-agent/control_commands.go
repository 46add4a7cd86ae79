package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"longline.dev/agent/internal/config"
)

// requestTimeout is long enough for a running reconciliation, because a request has to wait for its end.
const requestTimeout = time.Minute

// maxReply is the maximum size of a response in bytes. A plan for 10,000 VLLs has about 30 MB.
const maxReply = 256 << 20

// command is a command to the agent that runs with the same configuration.
type command struct {
	*flag.FlagSet
	config *string
	asJSON *bool
}

func newCommand() command {
	flags := quietFlags()
	return command{flags, flags.String("config", defaultConfig, ""), flags.Bool("json", false, "")}
}

// call sends body to the agent, or a GET request if body is nil. It prints the response with the function print,
// or unchanged with the option -json.
func call[T any](ctx context.Context, c command, path string, body any, stdout io.Writer, print func(io.Writer, *T)) error {
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
		method = http.MethodPost
	}
	answer, err := request(ctx, *c.config, method, path, text)
	if err != nil {
		return err
	}
	return show(stdout, answer, *c.asJSON, print)
}

// lineName returns the words before the options. A name of a line may have several words, even without quotes.
func lineName(args []string) (name string, options []string) {
	words := 0
	for words < len(args) && !strings.HasPrefix(args[words], "-") {
		words++
	}
	return strings.Join(args[:words], " "), args[words:]
}

func runPlan(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	intentPath := flags.String("intent", "", "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if *intentPath == "" {
		return &usageError{"plan needs -intent FILE"}
	}
	document, err := readInput(*intentPath, math.MaxInt64)
	if err != nil {
		return err
	}
	answer, err := request(ctx, *flags.config, http.MethodPost, "/v1/plan", document)
	if err != nil {
		return err
	}
	return show(stdout, answer, *flags.asJSON, printPlan)
}

// requesting returns a command that sends a request and has only the common options.
func requesting[T any](path string, body any, print func(io.Writer, *T)) runner {
	return func(ctx context.Context, args []string, stdout io.Writer) error {
		flags := newCommand()
		if err := parse(flags.FlagSet, args); err != nil {
			return err
		}
		return call(ctx, flags, path, body, stdout, print)
	}
}

func runHealth(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	ready := flags.Bool("ready", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	path := "/healthz"
	if *ready {
		path = "/readyz"
	}
	answer, err := request(ctx, *configPath, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = stdout.Write(answer)
	return err
}

// show prints a response. If asJSON is true, the response is printed unchanged; otherwise print formats
// it.
func show[T any](w io.Writer, answer []byte, asJSON bool, print func(io.Writer, *T)) error {
	if asJSON {
		_, err := w.Write(answer)
		return err
	}
	body := new(T)
	if err := json.Unmarshal(answer, body); err != nil {
		return fmt.Errorf("the agent's response: %w", err)
	}
	var out bytes.Buffer
	print(&out, body)
	_, err := out.WriteTo(w)
	return err
}

// request sends an HTTP request to the agent that runs with the configuration at configPath. It returns
// the response.
func request(ctx context.Context, configPath, method, path string, body []byte) ([]byte, error) {
	c, err := config.Load(configPath)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.ControlSocket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, whyUnanswered(err, c.ControlSocket)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response.StatusCode, answer)
	}
	return answer, nil
}

func whyUnanswered(err error, socket string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent is running with this configuration (no process listens on %s)", socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may be used by the agent's own user and by root", socket)
	}
	return err
}

// refusal returns the error that a problem document (RFC 9457) describes.
func refusal(status int, answer []byte) error {
	var problem struct {
		Title, Detail string
		Errors        []struct{ Pointer, Code, Detail string }
	}
	if err := json.Unmarshal(answer, &problem); err != nil || problem.Title == "" {
		return fmt.Errorf("the agent answered with status %d", status)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", problem.Title, problem.Detail)
	for _, e := range problem.Errors {
		fmt.Fprintf(&text, "\n  %s: %s (%s)", e.Pointer, e.Detail, e.Code)
	}
	return errors.New(text.String())
}

// standardInput is the path of standard input, for the options -intent, -token-file and -with.
const standardInput = "/dev/stdin"

// readInput reads the file of a command-line option, up to the given number of bytes. For standard input, it reads
// os.Stdin and does not open the path. The terminal may belong to the user who ran sudo or runuser. The agent's
// user can then read from the terminal, but cannot open it.
func readInput(path string, most int64) ([]byte, error) {
	file := os.Stdin
	if path != standardInput {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	return io.ReadAll(io.LimitReader(file, most))
}
