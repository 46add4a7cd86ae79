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

// Boot identifies one run of VPP. No state in VPP survives the run.
type Boot struct {
	PID uint32 `json:"pid"`
	MS  int64  `json:"ms"` // boot time, ms since the Unix epoch; 0 when unknown
}

// is reports whether b and other are certainly the same run.
func (b Boot) is(other Boot) bool { return b == other && b.MS != 0 }

// mayBe reports whether b and other can be the same run. Without the stats segment, the agent knows only the
// process number, and in a container each run of VPP may have the same number.
func (b Boot) mayBe(other Boot) bool {
	return b.PID == other.PID && (b.MS == other.MS || b.MS == 0 || other.MS == 0)
}

// Claim records an object that belongs to an end although no tag shows this. Exactly one of SubInterface,
// Tunnel, Port and Member is set.
//
// The agent writes a claim for a SubInterface or Tunnel before it creates the object. A Port is an interface
// that the agent did not create and that a whole-port VLL uses. It may have the tag of another user. A Member
// belongs to a bond that a VLL uses as a whole. The agent has a claim to a Member while it keeps the member
// down because the far end lost its link.
//
// WasUp means that the Port or Member was up before the VLL used it. LinkLoss means that the agent keeps the
// Port or Member down because the far end lost its link.
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

// Key returns the key of the end that owns the object.
func (c Claim) Key() intent.Key { return intent.Key{VLL: c.VLL, End: c.End} }

// SubInterface identifies a sub-interface by all properties that VPP fixes at its creation.
type SubInterface struct {
	Port   string `json:"port"`
	ID     uint32 `json:"id"`
	Tags   uint8  `json:"tags"`
	Dot1ad bool   `json:"dot1ad"`
	Outer  uint16 `json:"outer"`
	Inner  uint16 `json:"inner"`
}

// Tunnel identifies a tunnel by all properties that VPP fixes at its creation.
type Tunnel struct {
	Encapsulation string `json:"encapsulation"`
	Local         string `json:"local"`
	Remote        string `json:"remote"`
	VNI           uint32 `json:"vni"`
	GREKey        uint32 `json:"gre_key,omitempty"`
	Table         uint32 `json:"table,omitempty"`
}

// TunnelOf returns the journal's form of a tunnel.
func TunnelOf(t intent.Tunnel) Tunnel {
	return Tunnel{string(t.Encapsulation), t.Local.String(), t.Remote.String(), t.VNI, t.GREKey, t.Table}
}

// Journal has the agent's claims in one run of VPP.
type Journal struct {
	Boot   Boot    `json:"boot"`
	Claims []Claim `json:"claims"`
	// Applied is the generation that the agent has applied in this run, or 0.
	Applied int64 `json:"applied,omitempty"`
	// Sessions lists the paths of the agent's BFD sessions. It is written before the sessions are created,
	// because a session in VPP has no tag.
	Sessions []intent.Path `json:"sessions,omitempty"`
	// Tagged lists the interfaces that the agent has tagged in this run. Callers must not change it.
	Tagged Tagged `json:"-"`
}

// JournalFile keeps a journal on disk, in two files. The list of tagged interfaces is separate, because it
// grows with the number of VLLs.
type JournalFile struct {
	path    string
	written []byte
	journal Journal
	tagged  *taggedFile
	lost    error
}

// OpenJournal reads the journal in the folder. If there is no file, the journal is empty. If the file cannot
// be decoded, the journal is also empty, and Lost returns the reason. This loss is acceptable: only a power
// failure damages the file, and the power failure also ended the run of VPP that the journal was about.
// OpenJournal returns an error if the file cannot be read.
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
		f.lost = fmt.Errorf("the journal %s is damaged: %w", f.path, err)
		return f, nil
	}
	f.written, f.journal = data, journal
	return f, nil
}

// Lost returns the reason why earlier claims are unknown, or nil if they are known.
func (f *JournalFile) Lost() error { return f.lost }

// Of returns the journal of this run of VPP, without claims of other runs. If only the process number
// identifies the run, Of returns only the claims to ports and the tags. The planner uses these only if the
// state of VPP confirms them.
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

// Tag records the interfaces that now have the agent's tag (marked), and the indices of interfaces that no
// longer count as tagged (gone). It does not wait for the disk. After an error, the record is in memory until
// the agent ends, but not on disk.
func (f *JournalFile) Tag(boot Boot, marked Tagged, gone []uint32) error {
	return f.tagged.note(boot, marked, gone)
}

// Claim replaces the journal and returns when the journal is safe on disk. So even after a crash the agent
// knows which objects it was creating. If only Applied differs from the stored journal, Claim does not wait
// for the disk. If nothing differs, Claim does not write.
func (f *JournalFile) Claim(journal Journal) error {
	same := journal
	same.Applied = f.journal.Applied
	if data, err := json.Marshal(same); err == nil && bytes.Equal(data, f.written) {
		return f.Note(journal)
	}
	return f.write(journal, durable.Replace)
}

// Note replaces the journal without waiting for the disk. The record survives a crash of the agent. A crash
// of the machine may lose the record, but VPP then loses its state too.
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
