package main

import (
	"os"
	"testing"
)

// replaceStandardInput makes the text the standard input of the commands. As on another user's terminal,
// /dev/stdin leads elsewhere.
func replaceStandardInput(t *testing.T, text string) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	if _, err := writer.WriteString(text); err != nil { // the pipe's buffer is larger than the text
		t.Fatal(err)
	}
	writer.Close()
	before := os.Stdin
	os.Stdin = reader
	t.Cleanup(func() { os.Stdin = before })
}

func TestCommandsReadAStandardInputThatCannotBeOpenedAgain(t *testing.T) {
	intent, err := os.ReadFile(document(t, "vxlan4-dot1q.json"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t)
	a.start()
	a.awaitReady()
	for name, c := range map[string]struct {
		command     []string
		input, want string
	}{
		"plan":   {[]string{"plan", "-intent", standardInput}, string(intent), "generation 42: "},
		"vppcfg": {[]string{"vppcfg", "-with", standardInput}, "interfaces:\n  cust0: {mtu: 9000} # mine\n", "# mine\n"},
	} {
		t.Run(name, func(t *testing.T) {
			replaceStandardInput(t, c.input)
			out, err := invoke(t, append(c.command, "-config", a.config)...)
			if err != nil {
				t.Fatal(err)
			}
			wants(t, out, c.want)
		})
	}
}
