package inventory

// Templates returns how many templates are kept.
func (i *Inventory) Templates() int { return len(i.templates) }
