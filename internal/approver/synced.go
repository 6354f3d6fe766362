package approver

// Synced reports whether what decisions need has been read: the requests, the
// nodes and the ledger.
func (c *Controller) Synced() bool {
	return c.requests.HasSynced() && c.nodes.HasSynced() && c.opts.Known.Synced()
}
