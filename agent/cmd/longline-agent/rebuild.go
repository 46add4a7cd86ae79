package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

type rebuildAnswer struct{ VLL, End string }

// runRebuild requests a rebuild: the agent deletes the sub-interface of an end and creates it again.
func runRebuild(ctx context.Context, args []string, stdout io.Writer) error {
	flags := quietFlags()
	configPath := flags.String("config", defaultConfig, "")
	vll := flags.String("vll", "", "")
	end := flags.String("end", "", "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if *vll == "" || *end != "a" && *end != "z" {
		return &usageError{"rebuild needs -vll UUID and -end a or z"}
	}
	body, err := json.Marshal(map[string]string{"vll": *vll, "end": *end})
	if err != nil {
		return err
	}
	answer, err := request(ctx, *configPath, http.MethodPost, "/v1/rebuild", body)
	if err != nil {
		return err
	}
	return show(stdout, answer, *asJSON, func(w io.Writer, a *rebuildAnswer) {
		fmt.Fprintf(w, "the sub-interface of %s:%s will be deleted and created again as soon as the agent has no other work; an event in the portal confirms it\n", a.VLL, a.End)
	})
}
