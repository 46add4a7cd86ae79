package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"longline.dev/agent/internal/durable"
	"longline.dev/agent/internal/intent"
)

// Boot identifies one run of VPP. Nothing in VPP outlives it.
type Boot struct {
	PID uint32 `json:"pid"`
	MS  int64  `json:"ms"` // boot time, ms since the Unix epoch; 0 when unknown
}

// is: both are the same run for sure.
func (b Boot) is(other Boot) bool { return b == other && b.MS != 0 }

// mayBe: nothing tells them apart. Without the stats segment only the process is known, and in a container each run of VPP
// may have the same number.
func (b Boot) mayBe(other Boot) bool {
	return b.PID == other.PID && (b.MS == other.MS || b.MS == 0 || other.MS == 0)
}

// Claim is something that belongs to an end although no tag says so: exactly one of SubInterface, Tunnel, Port and Member
// is set. The first two are about to be made. A port is somebody else's interface, perhaps with a tag of theirs, that a
// whole-port VLL uses. A member belongs to a bond that a VLL has whole, and is claimed while it is down for the far end's link.
// WasUp says whether the VLL found the port up, LinkLoss that the port is down because of the far end's link.
type Claim struct {
	VLL          string        `json:"vll"`
	End          string        `json:"end"`
	Revision     int32         `json:"revision"`
	SubInterface *SubInterface `json:"sub_interface,omitempty"`
	Tunnel       *Tunnel       `json:"tunnel,omitempty"`
	Port         string        `json:"port,omitempty"`
	Member       string        `json:"member,omitempty"`
	WasUp        bool          `json:"was_up,omitempty"`
	LinkLoss     bool          `json:"link_loss,omitempty"`
}

// Key is the claiming end.
func (c Claim) Key() intent.Key { return intent.Key{VLL: c.VLL, End: c.End} }

// SubInterface is a sub-interface by all that its creation fixes.
type SubInterface struct {
	Port   string `json:"port"`
	ID     uint32 `json:"id"`
	Tags   uint8  `json:"tags"`
	Dot1ad bool   `json:"dot1ad"`
	Outer  uint16 `json:"outer"`
	Inner  uint16 `json:"inner"`
}

// Tunnel is a tunnel by all that its creation fixes.
type Tunnel struct {
	Encapsulation string `json:"encapsulation"`
	Local         string `json:"local"`
	Remote        string `json:"remote"`
	VNI           uint32 `json:"vni"`
	GREKey        uint32 `json:"gre_key,omitempty"`
	Table         uint32 `json:"table,omitempty"`
}

// TunnelOf is how the journal names a tunnel.
func TunnelOf(t intent.Tunnel) Tunnel {
	return Tunnel{string(t.Encapsulation), t.Local.String(), t.Remote.String(), t.VNI, t.GREKey, t.Table}
}

// Journal is what the agent claims in one run of VPP.
type Journal struct {
	Boot   Boot    `json:"boot"`
	Claims []Claim `json:"claims"`
	// Applied is the generation that has been carried out in this run, 0 for none.
	Applied int64 `json:"applied,omitempty"`
	// Sessions are the paths whose BFD session is the agent's, or is about to be made: a session bears no tag.
	Sessions []intent.Path `json:"sessions,omitempty"`
	// Tagged is what has been tagged in this run. It is not changed by whoever is given it.
	Tagged Tagged `json:"-"`
}

// JournalFile keeps a journal on disk, in two files: what was tagged grows with the number of lines.
type JournalFile struct {
	path    string
	written []byte
	journal Journal
	tagged  *taggedFile
	lost    error
}

// OpenJournal reads the journal in the folder; none is an empty one, and so is one that cannot be understood:
// a power cut may have torn it, and that was the end of the VPP that it speaks of. Error: it cannot be read.
func OpenJournal(folder string) (*JournalFile, error) {
	tagged, err := openTagged(folder)
	if err != nil {
		return nil, err
	}
	f := &JournalFile{path: filepath.Join(folder, "journal.json"), tagged: tagged}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	var journal Journal
	if err := json.Unmarshal(data, &journal); err != nil {
		f.lost = fmt.Errorf("the journal %s is torn: %w", f.path, err)
		return f, nil
	}
	f.written, f.journal = data, journal
	return f, nil
}

// Lost is why what was claimed before is not known, nil when it is.
func (f *JournalFile) Lost() error { return f.lost }

// Of is the journal of that run of VPP; what was claimed in another run is gone. Where nothing but the process tells the
// runs apart, it is what VPP has to bear out before anything is done (plan): ports, and what was tagged.
func (f *JournalFile) Of(boot Boot) Journal {
	journal := Journal{Boot: boot}
	switch {
	case f.journal.Boot.is(boot):
		journal.Claims, journal.Applied, journal.Sessions = f.journal.Claims, f.journal.Applied, f.journal.Sessions
	case f.journal.Boot.mayBe(boot):
		for _, claim := range f.journal.Claims {
			if claim.Port != "" {
				journal.Claims = append(journal.Claims, claim)
			}
		}
	}
	if f.tagged.boot.mayBe(boot) {
		journal.Tagged = f.tagged.tagged
	}
	return journal
}

// Tag notes what bears the agent's tag by now, and which interfaces no longer count as tagged, without waiting for the
// disk. Error: it is known until the agent ends, and not on disk.
func (f *JournalFile) Tag(boot Boot, marked Tagged, gone []uint32) error {
	return f.tagged.note(boot, marked, gone)
}

// Claim replaces the journal and returns when it is safe on disk: what is about to be made must be known
// even if nothing else of the agent survives. Where only Applied changes, Claim does not wait for the disk, as Note does
// not; without any change it leaves the disk alone.
func (f *JournalFile) Claim(journal Journal) error {
	same := journal
	same.Applied = f.journal.Applied
	if data, err := json.Marshal(same); err == nil && bytes.Equal(data, f.written) {
		return f.Note(journal)
	}
	return f.write(journal, durable.Replace)
}

// Note replaces the journal without waiting for the disk. That survives the death of the agent; what the
// machine takes with it concerns a VPP that is gone too.
func (f *JournalFile) Note(journal Journal) error { return f.write(journal, durable.ReplaceUnsynced) }

func (f *JournalFile) write(journal Journal, replace func(string, []byte) error) error {
	data, err := json.Marshal(journal)
	if err != nil {
		return err
	}
	if bytes.Equal(data, f.written) {
		return nil
	}
	if err := replace(f.path, data); err != nil {
		return err
	}
	f.written, f.journal = data, journal
	return nil
}
