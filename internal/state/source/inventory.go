package source

// ForInventory reports whether only attack paths need what could not be read.
func (m Missing) ForInventory() bool {
	return m.Kind&inventoryKinds() != 0
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
