package vppsim

import "fmt"

// The methods below show the state of interfaces to tests. The API shows the same state, except for the
// result of Forwarding.

// Forwarding returns nil if frames of the access interface with this name are forwarded in both
// directions. Otherwise it returns the reason.
func (s *Sim) Forwarding(name string) error {
	return s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil {
			return fmt.Errorf("%s does not exist", name)
		}
		if _, ok := v.whole(i, v.fib()); ok {
			return nil
		}
		far := v.connected(i)
		switch {
		case far == nil:
			return fmt.Errorf("%s is cross-connected with nothing", name)
		case v.connected(far) != i:
			return fmt.Errorf("%s is not cross-connected back to %s", far.name, name)
		case !v.receives(i) || !v.receives(far):
			return fmt.Errorf("%s: a refused sub-interface with the same tags took its frames", name)
		case !v.carries(i) || !v.carries(far):
			return fmt.Errorf("%s or %s is down", name, far.name)
		}
		return fmt.Errorf("%s drops: its far end has no route, or its local address is missing", far.name)
	})
}

// Interfaces returns the names of all interfaces in the order of their indices. The first is local0.
func (s *Sim) Interfaces() []string {
	var names []string
	s.inspect(func(v *vpp) error {
		for _, i := range v.interfaces {
			if i != nil {
				names = append(names, i.name)
			}
		}
		return nil
	})
	return names
}

// SetCarrier plugs in or unplugs the cable of a port.
func (s *Sim) SetCarrier(name string, in bool) error {
	return s.inspect(func(v *vpp) error {
		i := v.named(name)
		if i == nil || i.isSub() {
			return fmt.Errorf("%s is not a port", name)
		}
		i.carrier = in
		if up := in && i.adminUp; up != i.linkUp {
			i.linkUp = up
			v.announce(i, false)
		}
		return nil
	})
}

// inspect calls the function at with the running VPP. The VPP is locked during the call.
func (s *Sim) inspect(at func(*vpp) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vpp == nil {
		return errStopped
	}
	s.vpp.mu.Lock()
	defer s.vpp.mu.Unlock()
	return at(s.vpp)
}
