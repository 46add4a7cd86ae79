package intent

import (
	"errors"
	"strings"
	"testing"
)

const framesRequest = `{"schema":1,"vll":"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01","end":"a","revision":3,"frame":1518,"count":100,"rate_pps":10000}`

func TestARequestForTestFramesIsDecodedStrictly(t *testing.T) {
	requested, err := DecodeTestFrames([]byte(framesRequest))
	want := TestFrames{Key{"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01", "a"}, 3, 1518, 100, 10000}
	if err != nil || *requested != want {
		t.Errorf("got %+v, %v", requested, err)
	}
	for name, c := range map[string]struct{ from, to, pointer, code string }{
		"another schema":        {`"schema":1`, `"schema":2`, "/schema", "unknown_value"},
		"no vll":                {`"vll":"6f0b2c52-7c0e-4d3a-9a34-0b8f0f3c1a01",`, ``, "/vll", "missing"},
		"another spelling":      {`"vll"`, `"VLL"`, "/vll", "missing"},
		"a vll in upper case":   {`6f0b2c52`, `6F0B2C52`, "/vll", "type"},
		"no such end":           {`"a"`, `"b"`, "/end", "unknown_value"},
		"revision 0":            {`"revision":3`, `"revision":0`, "/revision", "out_of_range"},
		"a frame too short":     {`1518`, `63`, "/frame", "out_of_range"},
		"a frame too long":      {`1518`, `65536`, "/frame", "out_of_range"},
		"a fraction":            {`1518`, `1518.5`, "/frame", "type"},
		"null":                  {`100,`, `null,`, "/count", "type"},
		"less than none":        {`100,`, `-1,`, "/count", "out_of_range"},
		"too many":              {`100,`, `1001,`, "/count", "out_of_range"},
		"no rate":               {`10000`, `0`, "/rate_pps", "out_of_range"},
		"too quick":             {`10000`, `1000001`, "/rate_pps", "out_of_range"},
		"longer than a second":  {`10000`, `99`, "/rate_pps", "out_of_range"},
		"something more":        {`"schema":1`, `"schema":1,"node":"host-cust1"`, "/node", "unknown_field"},
		"the rate as text":      {`10000`, `"10000"`, "/rate_pps", "type"},
		"a list for the number": {`1518`, `[1518]`, "/frame", "type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeTestFrames([]byte(strings.Replace(framesRequest, c.from, c.to, 1)))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Errors[0].Pointer != c.pointer || invalid.Errors[0].Code != c.code {
				t.Errorf("got %+v, want %s at %s", err, c.code, c.pointer)
			}
		})
	}
	for name, body := range map[string]string{
		"nothing": "", "a list": "[]", "two documents": framesRequest + framesRequest,
		"a name twice": strings.Replace(framesRequest, `"schema":1`, `"schema":1,"schema":1`, 1),
	} {
		var malformed *MalformedError
		if _, err := DecodeTestFrames([]byte(body)); !errors.As(err, &malformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTheBoundsOfTestFramesAreAccepted(t *testing.T) {
	for _, numbers := range []string{`"frame":64,"count":0,"rate_pps":1}`, `"frame":65535,"count":1000,"rate_pps":1000}`, `"frame":64,"count":1,"rate_pps":1000000}`} {
		head, _, _ := strings.Cut(framesRequest, `"frame"`)
		if _, err := DecodeTestFrames([]byte(head + numbers)); err != nil {
			t.Errorf("%s: %+v", numbers, err)
		}
	}
}

func FuzzARequestForTestFramesIsDecodedOrRefused(f *testing.F) {
	for _, text := range []string{framesRequest, "{}", "[]", `{"schema":1}`, strings.Replace(framesRequest, "1518", "1e3", 1)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		requested, err := DecodeTestFrames(data)
		if (requested == nil) == (err == nil) {
			t.Fatalf("%v with error %v", requested, err)
		}
		if requested != nil && (requested.Count > requested.Rate || requested.Frame < 64 || requested.Frame > 65535) {
			t.Fatalf("accepted %+v", requested)
		}
	})
}
