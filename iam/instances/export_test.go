package instances

// Waiting is how many questions wait for their turn.
func (i *Instances) Waiting() int {
	i.gather.mu.Lock()
	defer i.gather.mu.Unlock()
	return len(i.gather.waiting)
}
