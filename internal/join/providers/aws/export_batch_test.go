package aws

// Waiting is how many instances of a region wait to be asked about.
func (a *Attestor) Waiting(region string) int { return a.options.EC2.Waiting(region) }
