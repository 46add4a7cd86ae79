package intent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a document; a valid one needs 4.
const maxDepth = 32

// parse reads exactly one JSON object: map[string]any, []any, string, json.Number, bool or nil. A name
// that occurs twice in one object is refused, because two readers may disagree about which one counts.
func parse(data []byte) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the text is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := parseValue(decoder, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the end of the document")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	return object, nil
}

func parseValue(decoder *json.Decoder, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("nested more than %d deep", maxDepth)
		}
		if token == '{' {
			return parseObject(decoder, depth+1)
		}
		return parseArray(decoder, depth+1)
	case json.Number:
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return nil, fmt.Errorf("number %.20s is out of range", token)
		}
		return token, nil
	default:
		return token, nil
	}
}

func parseObject(decoder *json.Decoder, depth int) (any, error) {
	object := make(map[string]any)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the decoder lets only strings stand before a colon
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the name %q occurs twice in one object", name)
		}
		if object[name], err = parseValue(decoder, depth); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}

func parseArray(decoder *json.Decoder, depth int) (any, error) {
	array := []any{}
	for decoder.More() {
		value, err := parseValue(decoder, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := decoder.Token()
	return array, err
}
