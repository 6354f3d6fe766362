// Package probes runs doctor --probe on real API servers whose protections of nodes are on or off, and
// shows that the outcomes are what is configured, and that nothing was changed: neither in the objects
// nor by a request in the audit log.
package probes
