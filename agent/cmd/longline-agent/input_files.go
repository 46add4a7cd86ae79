package main

import (
	"io"
	"os"
)

// standardInput is the path that the options -intent, -token-file and -with accept for standard input.
const standardInput = "/dev/stdin"

// openInput opens a file that a command-line option names. It does not open standard input a second time:
// if the terminal belongs to the user who ran sudo or runuser, the agent's user may read it, but not open
// it.
func openInput(path string) (io.ReadCloser, error) {
	if path == standardInput {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// readInput returns the content of a file that a command-line option names.
func readInput(path string) ([]byte, error) {
	file, err := openInput(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}
