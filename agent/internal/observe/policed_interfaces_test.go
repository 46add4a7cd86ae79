package observe

import "testing"

func TestFeaturesOnReadsOnlyTheGivenArc(t *testing.T) {
	for name, c := range map[string]struct {
		text             string
		found, isPoliced bool
	}{
		"another arc's policer":     {"Feature paths configured on p...\n\nip4-unicast:\n  policer-input\n\ndevice-input:\n  none configured\n", true, false},
		"the arc's policer":         {"Feature paths configured on p...\n\ndevice-input:\n  span-input\n  policer-input\n\nip4-output:\n  none configured\n", true, true},
		"applied twice":             {"\ndevice-input:\n  policer-input\n  policer-input\n", true, true},
		"lines that end as on wire": {"\r\ndevice-input:\r\n  policer-input\r\n", true, true},
		"a longer name":             {"\ndevice-input:\n  policer-input-2\n", true, false},
		"no such arc":               {"Feature paths configured on p...\n\nip4-unicast:\n  policer-input\n", false, false},
		"an error":                  {"show interface features: unknown input `p'\n", false, false},
		"nothing":                   {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			features, found := featuresOn(c.text, portArc)
			if found != c.found || features[policerNode] != c.isPoliced {
				t.Errorf("found %v, policed %v", found, features[policerNode])
			}
		})
	}
}
