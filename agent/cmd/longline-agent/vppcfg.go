package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"longline.dev/agent/internal/vppcfg"
)

// partlyNamedError means that the output was printed but lacks the names of some objects.
type partlyNamedError struct{ unnamed []vppcfg.Unnamed }

func (e *partlyNamedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d interfaces cannot be named in a file of vppcfg:", len(e.unnamed))
	for _, u := range e.unnamed {
		fmt.Fprintf(&text, "\n  %s of line %s, end %s\n    %s\n    %s", u.Name, u.VLL, u.End, u.Why, u.Consequence())
	}
	return text.String()
}

// runVppcfg prints the entries that a vppcfg file needs. It prints the entries alone, or the
// operator's file with these entries added.
func runVppcfg(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newCommand()
	with := flags.String("with", "", "")
	if err := parse(flags.FlagSet, args); err != nil {
		return err
	}
	if *flags.asJSON && *with != "" {
		return &usageError{"vppcfg prints either the agent's response with -json, or YAML with -with FILE"}
	}
	var file []byte
	if *with != "" {
		var err error
		if file, err = readInput(*with); err != nil {
			return err
		}
	}
	answer, err := request(ctx, *flags.config, http.MethodGet, "/v1/vppcfg", nil)
	if err != nil {
		return err
	}
	part := &vppcfg.Part{}
	if err := json.Unmarshal(answer, part); err != nil {
		return fmt.Errorf("the agent's response: %w", err)
	}
	text := answer
	switch {
	case *with != "":
		if text, err = part.Merge(file); err != nil {
			return fmt.Errorf("%s and this router's lines cannot be one file of vppcfg; nothing is printed:\n%w", *with, err)
		}
	case !*flags.asJSON:
		if text, err = part.Text(); err != nil {
			return err
		}
	}
	if _, err := stdout.Write(text); err != nil {
		return err
	}
	if len(part.Unnamed) > 0 {
		return &partlyNamedError{part.Unnamed}
	}
	return nil
}
