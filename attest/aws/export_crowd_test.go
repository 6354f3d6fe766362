package aws

// Gathered is how many instances of a region wait to be asked about.
func (a *Attestor) Gathered(region string) int {
	a.crowds.mu.Lock()
	defer a.crowds.mu.Unlock()
	n := 0
	for _, crowd := range a.crowds.gathered[region] {
		n += len(crowd.ids)
	}
	return n
}
