package controller

import "github.com/node-authorizer/node-authorizer/internal/staleness"

// Synced reports whether the requests, the nodes and the ledger have been read.
func (c *Controller) Synced() bool {
	return c.requests.HasSynced() && c.nodes.HasSynced() && c.opts.Known.Synced()
}

// Ages returns the ages of the requests and the nodes.
func (c *Controller) Ages() []staleness.Aged { return []staleness.Aged{c.requests.Age, c.nodes.Age} }

// fresh returns an error if a copy that decisions depend on is too old.
func (c *Controller) fresh() error {
	for _, check := range []func() error{c.requests.Age.Check, c.nodes.Age.Check, c.opts.Known.Fresh} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
