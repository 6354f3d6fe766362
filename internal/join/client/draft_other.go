//go:build !linux

package client

// draftsHere are the ways to create a draft, the best first.
func draftsHere() []newDraft { return []newDraft{beginNamed} }

// syncFolder does nothing: only Linux needs it.
func syncFolder(string) error { return nil }
