package source

// missInventory notes that a snapshot holds nothing of what only an inventory needs.
func (s *State) missInventory(file string) {
	reason := "the snapshot " + file + " is of an older version, which does not have what attack paths need; take it again"
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range kindCount {
		if info := k.describe(); info.inventory || k == kindPod || k == kindNode {
			s.facts.missing[k] = Missing{Resource: info.groupResource(), Reason: reason, Kind: 1 << k, forInventory: true}
		}
	}
}

// ForInventory reports whether only attack paths need what could not be read.
func (m Missing) ForInventory() bool {
	return m.forInventory || m.Kind&inventoryKinds() != 0
}

// inventoryKinds are the kinds that only an inventory needs.
func inventoryKinds() Kinds {
	var on Kinds
	for k := range kindCount {
		if k.describe().inventory {
			on |= 1 << k
		}
	}
	return on
}

// RestrainingKinds are the kinds without which attack paths may be more certain than they are, and never fewer.
func RestrainingKinds() Kinds {
	var on Kinds
	for k := range kindCount {
		if k.describe().restrains {
			on |= 1 << k
		}
	}
	return on
}
