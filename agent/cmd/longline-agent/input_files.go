package main

import (
	"io"
	"os"
)

// standardInput is the path of standard input, for the options -intent, -token-file and -with.
const standardInput = "/dev/stdin"

// openInput opens the file of a command-line option. For standard input, it returns os.Stdin and does not
// open the path. The terminal may belong to the user who ran sudo or runuser. The agent's user can
// then read from the terminal, but cannot open it.
func openInput(path string) (io.ReadCloser, error) {
	if path == standardInput {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// readInput returns the content of the file of a command-line option.
func readInput(path string) ([]byte, error) {
	file, err := openInput(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}
